import { onceServed } from '@tollgate/testing';
import type { Deployment } from './deployment';
import { complete, costOf, createTenant, ledgerOf, underWay, type TestTenant } from './fixtures';
import { pendingHolds, reconciled } from './reconcile';

/** The drain time of the deployment: 4 s more than the answers last. */
export const DRAIN_SECONDS = '12';

/** For a deployment with TOLLGATE_DRAIN_SECONDS of `DRAIN_SECONDS`. */
export function stoppingSuite(tollgate: Deployment): void {
  describe('a stop', () => {
    it('finishes running requests, ends a long stream after the drain time, and loses nothing', async () => {
      const tenant = await createTenant(tollgate.ready, 1_000);
      const other = await createTenant(tollgate.ready, 1_000);
      // Repeated while a busy store refuses it.
      const asked = ({ key }: TestTenant, body: object) =>
        onceServed(() => complete(tollgate.ready, key, { messages: [{ role: 'user', content: 'x' }], ...body }));
      const endless = asked(other, { stream: true, simulator: { tokensPerSecond: 50, answerTokens: 4_000 } });
      await pendingHolds(tollgate.ready, 1);
      // They end within the drain time, but not before the test has seen them running.
      const stream = asked(tenant, { stream: true, simulator: { tokensPerSecond: 60, answerTokens: 480 } });
      const plain = asked(tenant, { simulator: { firstTokenDelayMs: 8_000 } });
      await underWay(tollgate.gateways, 3);
      const stopped = tollgate.stop();
      const answers = await Promise.all([stream, plain]);
      expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
      expect((await endless).code).toBeTruthy();
      await stopped;

      await tollgate.start();
      await reconciled(tollgate.ready);
      const { charges } = await ledgerOf(tollgate.database, tenant.id);
      for (const answer of answers) expect(charges.get(answer.requestId)).toBe(costOf(answer));
      const { rows } = await tollgate.database((client) =>
        client.query<{ completion_tokens: number; outcome: string; estimated: boolean }>(
          'SELECT completion_tokens, outcome, estimated FROM metering.usage_event WHERE tenant_id = $1',
          [other.id],
        ),
      );
      expect(rows).toEqual([expect.objectContaining({ estimated: true })]);
      // Twelve seconds at 50 tokens a second plus those before the signal: it was ended before it had all 4,000.
      expect(rows[0]!.completion_tokens).toBeGreaterThan(10);
      expect(rows[0]!.completion_tokens).toBeLessThan(4_000);
      expect((await asked(tenant, {})).status).toBe(200);
    });
  });
}
