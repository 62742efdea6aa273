// The dashboards as tables: rows of panels with their queries. dashboards.mjs makes Grafana's JSON from them.
import { line, money, quantiles, rate } from './queries.mjs';

const OF_MODEL = '{model=~"$model"}';
const OF_BACKEND = '{model=~"$model",backend=~"$backend"}';
const CREDIT = 'code=~"credit_exhausted|budget_reached|tenant_suspended"';
const LIMITS = 'code=~"requests_limit_exceeded|tokens_limit_exceeded|concurrency_limit_exceeded|credit_held"';

const panel = (title, unit, ...lines) => ({ title, unit, lines: lines.flat() });

const service = {
  uid: 'tollgate-service',
  title: 'Tollgate: service',
  description: 'Requests, errors and durations of each service, and what it is short of.',
  variables: [],
  rows: {
    'Inference API': [
      panel('Requests by outcome', 'reqps', line(rate('tollgate_requests_total', 'outcome'), '{{outcome}}')),
      panel(
        'Share of requests that failed',
        'percentunit',
        line('tollgate:request_errors:ratio_rate5m', '5 minutes'),
        line('tollgate:request_errors:ratio_rate1h', '1 hour'),
      ),
      panel('Duration of served requests', 's', quantiles('tollgate_request_duration_seconds')),
      panel('Refusals by code', 'reqps', line(rate('tollgate_refusals_total', 'code'), '{{code}}')),
      panel('Refusals by plan', 'reqps', line(rate('tollgate_refusals_total', 'plan'), '{{plan}}')),
      panel('Requests in progress', 'short', line('sum by (instance) (tollgate_requests_in_flight)', '{{instance}}')),
    ],
    'Metering and billing': [
      panel(
        'Messages handled',
        'cps',
        line(rate('tollgate_messages_handled_total', 'topic', 'group'), '{{topic}} {{group}}'),
      ),
      panel(
        'Batches that failed',
        'cps',
        line(rate('tollgate_messages_failed_batches_total', 'topic', 'group'), '{{topic}} {{group}}'),
      ),
      panel('Age of messages', 's', quantiles('tollgate_messages_age_seconds', '', 'topic', 'group')),
      panel('Usage events', 'cps', line(rate('tollgate_metering_events_total', 'result'), '{{result}}')),
      panel('Charges', 'cps', line(rate('tollgate_billing_charges_total', 'result'), '{{result}}')),
      panel(
        'Requests between services that came too late',
        'cps',
        line(rate('tollgate_requests_expired_total', 'service'), '{{service}}'),
      ),
    ],
    Saturation: [
      panel('Processor', 'percentunit', line('rate(process_cpu_seconds_total[$__rate_interval])', '{{instance}}')),
      panel('Delay of the event loop, p99', 's', line('nodejs_eventloop_lag_p99_seconds', '{{instance}}')),
      panel('Memory', 'bytes', line('process_resident_memory_bytes', '{{instance}}')),
      panel('Connections', 'short', line('sum by (instance, port) (tollgate_connections)', '{{instance}} {{port}}')),
      panel(
        'Bodies in memory',
        'bytes',
        line('sum by (instance) (tollgate_body_bytes)', '{{instance}} requests'),
        line('sum by (instance, state) (tollgate_unread_answer_bytes)', '{{instance}} answers, {{state}}'),
      ),
      panel('Connections refused', 'cps', line(rate('tollgate_connections_refused_total', 'port'), '{{port}}')),
    ],
  },
};

const inference = {
  uid: 'tollgate-inference',
  title: 'Tollgate: inference',
  description: 'Speed and failures of models and of their backends.',
  variables: ['model', 'backend'],
  rows: {
    Models: [
      panel('Time to the first token', 's', quantiles('tollgate_time_to_first_token_seconds', OF_MODEL, 'model')),
      panel(
        'Streams with a late first token',
        'percentunit',
        line('tollgate:first_tokens_late:ratio_rate5m', 'above 2 s'),
      ),
      panel(
        'Output tokens',
        'tps',
        line(rate(`tollgate_tokens_total{model=~"$model",kind="completion"}`, 'model'), '{{model}}'),
      ),
      panel(
        'Prompt tokens',
        'tps',
        line(
          rate(`tollgate_tokens_total{model=~"$model",kind=~"prompt|cached"}`, 'model', 'kind'),
          '{{model}} {{kind}}',
        ),
      ),
      panel('Duration of requests', 's', quantiles('tollgate_request_duration_seconds', OF_MODEL, 'model')),
      panel(
        'Requests that wait for a place',
        'short',
        line(`sum by (model) (tollgate_backend_queue_length${OF_MODEL})`, '{{model}}'),
      ),
    ],
    Backends: [
      panel('Time to the first byte', 's', quantiles('tollgate_backend_first_byte_seconds', OF_BACKEND, 'backend')),
      panel('Duration of calls', 's', quantiles('tollgate_backend_call_duration_seconds', OF_BACKEND, 'backend')),
      panel(
        'Output tokens',
        'tps',
        line(
          rate(
            `tollgate_backend_tokens_total{model=~"$model",backend=~"$backend",kind="completion"}`,
            'model',
            'backend',
          ),
          '{{model}} {{backend}}',
        ),
      ),
      panel(
        'Calls by result',
        'reqps',
        line(rate(`tollgate_backend_calls_total${OF_BACKEND}`, 'backend', 'result'), '{{backend}} {{result}}'),
      ),
      panel(
        'Calls in progress',
        'short',
        line('sum by (backend) (tollgate_backend_calls_in_flight{backend=~"$backend"})', '{{backend}}'),
      ),
      panel(
        'Attempts at another backend or model',
        'cps',
        line(rate(`tollgate_backend_retries_total${OF_MODEL}`, 'model', 'result'), '{{model}} {{result}}'),
        line(rate(`tollgate_model_fallbacks_total${OF_MODEL}`, 'model', 'fallback'), '{{model}} by {{fallback}}'),
        line(
          rate(`tollgate_model_fallbacks_left_out_total${OF_MODEL}`, 'model', 'why'),
          '{{model}}: fallback left out, {{why}}',
        ),
      ),
      panel(
        'Open circuit breakers',
        'short',
        line('sum by (backend) (tollgate_backend_open_breakers{backend=~"$backend"})', '{{backend}}'),
      ),
      panel('Healthy', 'bool', line('min by (backend) (tollgate_backend_healthy{backend=~"$backend"})', '{{backend}}')),
      panel('Drained', 'bool', line('max by (backend) (tollgate_backend_drained{backend=~"$backend"})', '{{backend}}')),
    ],
    'What backends report': [
      panel(
        'Token counts that were not believed',
        'cps',
        line(rate(`tollgate_usage_disbelieved_total${OF_BACKEND}`, 'backend', 'what'), '{{backend}} {{what}}'),
      ),
      panel(
        'Answers beyond their limit',
        'cps',
        line(rate(`tollgate_overlong_answers_total${OF_BACKEND}`, 'backend'), '{{backend}}'),
      ),
      panel(
        'Tokens that the books do not explain',
        'percentunit',
        line('max by (backend, kind) (tollgate_backend_drift_ratio{backend=~"$backend"})', '{{backend}} {{kind}}'),
      ),
    ],
  },
};

const books = {
  uid: 'tollgate-money',
  title: 'Tollgate: money',
  description:
    'From the hold to the debit: amounts per second, the lag of each stage, and what stands against the books.',
  variables: [],
  rows: {
    'From hold to debit': [
      panel(
        'Amounts in the currency, per second',
        'none',
        line(money('tollgate_held_nanos_total'), 'held'),
        line(money('tollgate_settled_nanos_total'), 'settled'),
        line(money('tollgate_metering_charged_nanos_total'), 'charged'),
        line(money('tollgate_billing_gathered_nanos_total'), 'gathered'),
        line(money('tollgate_billing_posted_nanos_total'), 'posted'),
      ),
      panel('Holds', 'short', line('max by (state) (tollgate_holds)', '{{state}}')),
      panel(
        'Overrun in the currency, per second',
        'none',
        line(money('tollgate_overrun_nanos_total'), 'the operator’s loss'),
      ),
    ],
    'Lag of each stage': [
      panel('From the request to its charge', 's', quantiles('tollgate_billing_charge_lag_seconds')),
      panel('From the request to its debit', 's', quantiles('tollgate_billing_debit_lag_seconds')),
      panel('Late charges', 'percentunit', line('tollgate:charges_late:ratio_rate1h', 'above 10 s')),
      panel('Debits overdue', 's', line('max(tollgate_billing_posting_overdue_seconds)', 'overdue')),
      panel('Usage without credit', 's', line('max(tollgate_billing_uncovered_seconds)', 'the oldest')),
      panel('Months that stay open', 'short', line('max(tollgate_billing_months_waiting)', 'months')),
    ],
    Refusals: [
      panel(
        '402 by code and plan',
        'reqps',
        line(rate(`tollgate_refusals_total{${CREDIT}}`, 'code', 'plan'), '{{code}} {{plan}}'),
      ),
      panel(
        '429 by code and plan',
        'reqps',
        line(rate(`tollgate_refusals_total{${LIMITS}}`, 'code', 'plan'), '{{code}} {{plan}}'),
      ),
    ],
    'Against the books': [
      panel('Runs of reconcile', 'short', line('sum by (result) (tollgate_reconcile_runs_total)', '{{result}}')),
      panel('Differences of the last run', 'short', line('max(tollgate_reconcile_differences)', 'differences')),
      panel('Usage events in quarantine', 'short', line('max(tollgate_metering_open_refused_events)', 'open')),
      panel('Events quarantined', 'cps', line(rate('tollgate_metering_refused_events_total', 'wrong'), '{{wrong}}')),
      panel(
        'Usage published again',
        'cps',
        line('sum(rate(tollgate_metering_swept_events_total[$__rate_interval]))', 'events'),
      ),
      panel(
        'Usage of closed months',
        'short',
        line('sum(increase(tollgate_metering_late_events_total[$__rate_interval]))', 'events'),
      ),
      panel(
        'Holds lost, settled late, without a hold',
        'cps',
        line('sum(rate(tollgate_lost_holds_total[$__rate_interval]))', 'lost'),
        line('sum(rate(tollgate_settled_late_total[$__rate_interval]))', 'late'),
        line('sum(rate(tollgate_settled_without_hold_total[$__rate_interval]))', 'without a hold'),
      ),
      panel('Tenants repaired', 'cps', line(rate('tollgate_billing_poisoned_tenants_total', 'found'), '{{found}}')),
      panel(
        'Balance updates sent again',
        'cps',
        line('sum(rate(tollgate_billing_balance_updates_resent_total[$__rate_interval]))', 'tenants'),
      ),
    ],
  },
};

const stores = {
  uid: 'tollgate-stores',
  title: 'Tollgate: Kafka and stores',
  description: 'Messages between the services, outboxes, and the servers that each process needs.',
  variables: [],
  rows: {
    Messages: [
      panel('Waiting', 'short', line('max by (topic, group) (tollgate_messages_waiting)', '{{topic}} {{group}}')),
      panel(
        'Age when handled, p99',
        's',
        line(
          'histogram_quantile(0.99, sum by (le, topic, group) ' +
            '(rate(tollgate_messages_age_seconds_bucket[$__rate_interval])))',
          '{{topic}} {{group}}',
        ),
      ),
      panel('Handled', 'cps', line(rate('tollgate_messages_handled_total', 'topic', 'group'), '{{topic}} {{group}}')),
      panel(
        'Quarantined',
        'short',
        line('sum by (topic, group) (tollgate_messages_dead_total)', '{{topic}} {{group}}'),
      ),
      panel('Forged', 'short', line('sum by (topic, group) (tollgate_messages_forged_total)', '{{topic}} {{group}}')),
      panel('Unreadable requests', 'short', line('sum by (topic) (tollgate_requests_unreadable_total)', '{{topic}}')),
    ],
    Outboxes: [
      panel('Oldest row', 's', line('max by (outbox) (tollgate_outbox_oldest_seconds)', '{{outbox}}')),
      panel(
        'Rows that can never be published',
        'short',
        line('sum by (outbox) (tollgate_outbox_refused_total)', '{{outbox}}'),
      ),
      panel(
        'Usage events left to the sweeper',
        'cps',
        line('sum(rate(tollgate_usage_events_left_to_sweeper_total[$__rate_interval]))', 'events'),
      ),
    ],
    Stores: [
      panel(
        'Dependencies that answer',
        'bool',
        line('min by (instance, dependency) (tollgate_dependency_up)', '{{instance}} {{dependency}}'),
      ),
      panel(
        'Refused operations on holds',
        'cps',
        line(rate('tollgate_admission_forbidden_transitions_total', 'operation'), '{{operation}}'),
      ),
      panel('Idempotency-Keys', 'cps', line(rate('tollgate_idempotent_requests_total', 'result'), '{{result}}')),
    ],
    Configuration: [
      panel('Changes of tollgate.yaml', 'short', line('sum by (result) (tollgate_config_reloads_total)', '{{result}}')),
      panel(
        'Changes of the message keys',
        'short',
        line('sum by (result) (tollgate_message_keys_reloads_total)', '{{result}}'),
      ),
    ],
  },
};

/** By the name of the file. */
export const BOARDS = { service, inference, money: books, stores };
