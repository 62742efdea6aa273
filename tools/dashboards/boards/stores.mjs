import { line, panel, rate } from '../queries.mjs';

export const stores = {
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
