import { eventually, onceServed } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import type { Deployment } from './deployment';
import { chat, newTenant } from './first-steps';
import type { App, ServiceProcess } from './service-process';

const SETTLED_TIMEOUT_MS = 20_000;
const APPS: readonly App[] = ['auth', 'metering', 'billing', 'gateway'];

/** The metrics of dashboards and alerts: a series with its value for each service. */
const SERIES: Record<App, RegExp[]> = {
  gateway: [
    /^tollgate_requests_total\{model="sim-large",outcome="complete"\} 2$/m,
    /^tollgate_tokens_total\{model="sim-large",kind="completion"\} [1-9]/m,
    /^tollgate_request_duration_seconds_count\{model="sim-large"\} 2$/m,
    /^tollgate_requests_in_flight 0$/m,
    /^tollgate_messages_waiting\{topic="credit-news",group="admission"\} 0$/m,
  ],
  auth: [/^tollgate_outbox_oldest_seconds\{outbox="auth"\} 0$/m],
  console: [],
  metering: [
    /^tollgate_holds\{state="pending"\} 0$/m,
    /^tollgate_holds\{state="settled"\} 0$/m,
    /^tollgate_messages_waiting\{topic="usage-events",group="metering"\} 0$/m,
    /^tollgate_outbox_oldest_seconds\{outbox="metering"\} 0$/m,
  ],
  billing: [
    /^tollgate_billing_charge_lag_seconds_count 2$/m,
    /^tollgate_billing_debit_lag_seconds_count [1-9]/m,
    /^tollgate_billing_posting_overdue_seconds 0$/m,
    /^tollgate_messages_waiting\{topic="charges",group="billing"\} 0$/m,
    /^tollgate_outbox_oldest_seconds\{outbox="billing"\} 0$/m,
  ],
};

async function expectMetrics(services: readonly ServiceProcess[]): Promise<void> {
  for (const service of services) {
    await eventually(
      async () => {
        const text = await service.metrics();
        for (const series of [...SERIES[service.app], /^nodejs_eventloop_lag_p99_seconds /m])
          expect(text).toMatch(series);
      },
      { timeoutMs: SETTLED_TIMEOUT_MS, everyMs: 200 },
    );
  }
}

/** The four services together, from their first start to their end. */
export function fourServicesTests(deployment: Deployment): void {
  it('serve a request of a new tenant, meter it, debit it, and stop cleanly', async () => {
    const services: ServiceProcess[] = await Promise.all(APPS.map((app) => deployment.start(app)));
    const gateway = services[3]!;
    const begun = new Date().toISOString();
    const tenant = await newTenant(gateway);
    const first = 1;
    // Expensive enough for a debit of whole cents.
    const long = { max_tokens: 1_000, simulator: { answerTokens: 1_000 } };
    const answer = await onceServed(() => chat(gateway, tenant.key, long));
    expect(answer.status).toBe(200);

    const management = `${gateway.addresses.publicUrl}/_api/v1`;
    let costCents = 0;
    await eventually(
      async () => {
        const usage = await call<{ data: { totals: { requests: number; costCents: number } } }>(
          // By default it begins with the month, which may end meanwhile.
          `${management}/usage?from=${begun}`,
          tenant.token,
        );
        expect(usage.body.data.totals).toMatchObject({ requests: first + 1 });
        costCents = usage.body.data.totals.costCents;
      },
      { timeoutMs: SETTLED_TIMEOUT_MS },
    );
    expect(costCents).toBeGreaterThanOrEqual(20);
    await eventually(
      async () => {
        const billing = await call<{
          data: { balanceCents: number; entries: { type: string; amountCents: number }[] };
        }>(`${management}/billing`, tenant.token);
        const { balanceCents, entries } = billing.body.data;
        const debits = entries
          .filter(({ type }) => type === 'usage')
          .reduce((sum, entry) => sum - entry.amountCents, 0);
        expect(debits).toBeGreaterThanOrEqual(costCents - 1);
        expect(balanceCents).toBe(1_000 - debits);
      },
      { timeoutMs: SETTLED_TIMEOUT_MS },
    );
    await expectMetrics(services);
    for (const service of services) {
      service.child.kill('SIGTERM');
      expect([service.app, await service.exited()]).toEqual([service.app, 0]);
    }
  });
}
