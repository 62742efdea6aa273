import { line, money, panel, quantiles, rate } from '../queries.mjs';

const CREDIT = 'code=~"credit_exhausted|budget_reached|tenant_suspended"';
const LIMITS = 'code=~"requests_limit_exceeded|tokens_limit_exceeded|concurrency_limit_exceeded|credit_held"';

export const books = {
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
      panel('Oldest month of usage overdue', 's', line('max(tollgate_metering_month_overdue_seconds)', 'overdue')),
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
