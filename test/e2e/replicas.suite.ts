import { eventually } from '@tollgate/testing';
import { operator, type Deployment, type Ready } from './deployment';
import { complete, createTenant, pendingHolds, reconciled } from './fixtures';

export function replicasSuite(tollgate: Deployment): void {
  describe('two gateways', () => {
    let one: Ready;
    let two: Ready;
    beforeAll(() => {
      [one, two] = tollgate.gateways as [Ready, Ready];
    });
    const hello = { messages: [{ role: 'user', content: 'hello' }] };

    it('share keys, credit and the limit of requests', async () => {
      const tenant = await createTenant(one, 1_000, 'slow');
      const answers = [];
      for (let i = 0; i < 14; i++) answers.push(await complete(i % 2 ? one : two, tenant.key, hello));
      // One of the ten went to the probe of createTenant.
      expect(answers.filter((answer) => answer.status === 200)).toHaveLength(9);
      expect(new Set(answers.filter((answer) => answer.status !== 200).map((answer) => answer.code))).toEqual(
        new Set(['requests_limit_exceeded']),
      );
    });

    it('share the places at once, also those of streams', async () => {
      const tenant = await createTenant(two, 1_000, 'slow');
      const slow = { ...hello, stream: true, simulator: { tokensPerSecond: 100, answerTokens: 80 } };
      const running = [one, two, one, two].map((gateway) => complete(gateway, tenant.key, slow));
      await pendingHolds(one, 4);
      expect(await complete(two, tenant.key, hello)).toMatchObject({
        status: 429,
        code: 'concurrency_limit_exceeded',
      });
      expect((await Promise.all(running)).map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
      expect((await complete(one, tenant.key, hello)).status).toBe(200);
    });

    it('share a revocation within a second', async () => {
      const worst: number[] = [];
      for (let round = 0; round < 5; round++) {
        const tenant = await createTenant(one, 100);
        expect((await complete(two, tenant.key, hello)).status).toBe(200);
        await operator(one).delete(`/_operator/v1/tenants/${tenant.id}/keys/${tenant.keyId}`);
        const revoked = performance.now();
        await eventually(async () => expect((await complete(two, tenant.key, hello)).status).toBe(401), {
          timeoutMs: 1_000,
          everyMs: 5,
        });
        worst.push(performance.now() - revoked);
      }
      expect(Math.max(...worst)).toBeLessThan(1_000);
    });

    it('go on without each other: one is killed, the other settles what it left and keeps the books', async () => {
      const tenant = await createTenant(two, 1_000);
      await Promise.all([complete(one, tenant.key, hello), complete(two, tenant.key, hello)]);
      const cut = complete(one, tenant.key, {
        ...hello,
        stream: true,
        simulator: { tokensPerSecond: 50, answerTokens: 2_000 },
      });
      cut.catch(() => {});
      await pendingHolds(two, 1);
      await tollgate.killGateway(0);
      await expect(cut).rejects.toThrow();
      expect((await complete(two, tenant.key, hello)).status).toBe(200);
      await reconciled(two);
      await tollgate.start();
    });
  });
}
