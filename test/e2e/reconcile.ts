import { eventually } from '@tollgate/testing';
import { operator, type Ready } from './deployment';
import { expectStatus } from './fixtures';

const ARRIVAL_TIMEOUT_MS = 20_000;
/** Only for a hang. A run that has died is reported as failed after 15 s. */
const RECONCILE_TIMEOUT_MS = 120_000;
const POLL_MS = 200;

/** The report of reconcile. */
export interface Report {
  ok: boolean;
  pendingHolds: number;
  settledHolds: number;
  differences: unknown[];
  eventsNanos: string;
  debitsNanos: string;
  carriedNanos: string;
}

/** Waits until this many requests hold credit. Each look runs reconcile, so the requests must last long enough. */
export async function pendingHolds(ready: Ready, count: number): Promise<void> {
  await eventually(
    async () => {
      expect((await reconcileReport(ready)).pendingHolds).toBe(count);
    },
    { timeoutMs: ARRIVAL_TIMEOUT_MS },
  );
}

/** Waits until no request is running and no message is waiting. Returns the report of reconcile. */
export function reconciled(ready: Ready, timeoutMs = 90_000): Promise<Report> {
  return eventually(
    async () => {
      const report = await reconcileReport(ready);
      expect(report).toMatchObject({ ok: true, differences: [], pendingHolds: 0, settledHolds: 0 });
      return report;
    },
    { timeoutMs, everyMs: POLL_MS },
  );
}

/** Runs reconcile to its end. On a busy machine that takes longer than the request that starts it may wait. */
export async function reconcileReport(ready: Pick<Ready, 'operatorUrl' | 'operatorSecret'>): Promise<Report> {
  const api = operator(ready);
  const { status, body } = await api.post<{ data: Report & { id: string } }>('/_operator/v1/reconcile');
  if (status !== 202) return (await expectStatus(Promise.resolve({ status, body }), 200)).data;
  const until = Date.now() + RECONCILE_TIMEOUT_MS;
  for (;;) {
    const path = `/_operator/v1/reconcile/${body.data.id}`;
    const { data } = await expectStatus(api.get<{ data: { state: string; report?: Report } }>(path), 200);
    if (data.report !== undefined) return data.report;
    if (data.state === 'failed') throw new Error(`the run failed: ${JSON.stringify(data)}`);
    if (Date.now() >= until) throw new Error(`the run has not ended: ${JSON.stringify(data)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
