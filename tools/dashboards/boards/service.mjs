import { line, panel, quantiles, rate } from '../queries.mjs';

export const service = {
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
        line('sum by (instance) (tollgate_recorded_answer_bytes)', '{{instance}} answers, recorded'),
      ),
      panel('Connections refused', 'cps', line(rate('tollgate_connections_refused_total', 'port'), '{{port}}')),
    ],
  },
};
