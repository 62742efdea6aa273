/**
 * The modules of apps and libs that tests below test/ may import beside fixtures, types and what a package exports:
 * by reason, without `.ts`. CONTRIBUTING.md explains the reasons.
 */
const TABLES_AND_LIMITS = [
  'apps/(auth|billing|console|metering)/src/database',
  'apps/(billing|gateway|metering)/src/settings',
  'apps/cli/src/program',
  'apps/console/src/access/roles',
  'apps/console/src/sign-in/auth-calls',
  'apps/gateway/src/(inference-errors|inference/plain/answer-reader|management/routes|operator/routes)',
  'apps/gateway/src/openapi/(document|operator-document|route-table)',
];

/** Parts that a test starts in its own process, or that write, read or check the books or topics of a trial. */
const PARTS = [
  'apps/billing/src/budgets/(budget-rows|budgets|held-by-key)',
  'apps/billing/src/gather/charge-gatherer',
  'apps/billing/src/invoices/invoice-closer',
  'apps/billing/src/ledger/(books-store|journal)',
  'apps/billing/src/post/poster',
  'apps/billing/src/reconcile/(audit|charges|invoice-audit|retired-months)',
  'apps/billing/src/(refunds/money-out|tenants/tenant-status|topups/top-ups)',
  'apps/console/src/console\\.module',
  'apps/console/src/access/(changes|erasures|invitations|members|operator-links|operators|people|recoveries)',
  'apps/console/src/access/operator-links\\.controller',
  'apps/console/src/api/(operator/fleet-states|records/(money|requests)\\.controller)',
  'apps/console/src/api/usage/(overviews|usage\\.controller)',
  'apps/console/src/(http/mailer|sign-in/sign-in)',
  'apps/gateway/src/(accept/credential-guard|activity/key-activity|inference/client/kept-connections)',
  'apps/gateway/src/public/public-hooks',
  'apps/gateway/src/upstream/(drains|upstream)',
  'apps/metering/src/backends/(compare|sampler)',
  'apps/metering/src/consume/usage-consumer',
  'apps/metering/src/audit/roll-up-audit',
  'apps/metering/src/query/(month-spent|usage-query|usage-reads)',
  'apps/metering/src/record/(partitions|price-versions|usage-days)',
  'apps/metering/src/retain/(retention|retired-months)',
  'apps/metering/src/sweep/sweeper',
  'libs/messaging/src/envelope',
  'libs/messaging/src/kafka/(admin/(apply-topics|topic-plan)|consume/(dead-letters|read-topic)|publish/publisher)',
];

/** Functions that a test combines across apps or stages of the gateway. */
const TESTED_FUNCTIONS = [
  'apps/billing/src/gather/read-charge',
  'apps/billing/src/ledger/core/(books|entry|gather|period|post)',
  'apps/gateway/src/admit/(admit|stream-allowance)',
  'apps/gateway/src/body/inference-request',
  'apps/gateway/src/prompt/(prompt-bound|tokenizer)',
  'apps/gateway/src/settle/usage-event',
  'apps/gateway/src/upstream/(count/delivered-text|stream/stream-relay|wire/chunk-translator|wire/json-text)',
  'apps/metering/src/(consume/read-usage-event|price/rate)',
  'apps/simulator/src/wire/prompt',
];

module.exports = [...TABLES_AND_LIMITS, ...PARTS, ...TESTED_FUNCTIONS].map((path) => `^${path}\\.ts$`);
