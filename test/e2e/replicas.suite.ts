import { eventually, inForceAfterMs, onceServed } from '@tollgate/testing';
import { call, operator, type Deployment, type Ready } from './deployment';
import { answered, complete, createTenant, ledgerOf, type Completion, type TestTenant } from './fixtures';
import { pendingHolds, reconciled } from './reconcile';

/** With ten requests a minute, another one is allowed after each of these intervals. */
const PLACE_MS = 6_000;

export function replicasSuite(tollgate: Deployment): void {
  describe('two gateways', () => {
    let one: Ready;
    let two: Ready;
    beforeAll(() => {
      [one, two] = tollgate.gateways as [Ready, Ready];
    });
    const hello = { messages: [{ role: 'user', content: 'hello' }] };
    /** A chat, repeated while a busy store makes it a 503. */
    const ask = (gateway: Ready, key: string, body: Record<string, unknown> = hello) =>
      onceServed(() => complete(gateway, key, body));
    const known = (gateway: Ready, { key }: TestTenant) =>
      eventually(async () => expect((await call(`${gateway.inferenceUrl}/models`, key)).status).toBe(200));

    it('share keys, credit and the limit of requests', async () => {
      const from = performance.now();
      const tenant = await createTenant(one, 1_000, 'slow');
      const answers = [];
      await known(two, tenant);
      for (let i = 0; i < 14; i++) answers.push(await complete(i % 2 ? one : two, tenant.key, hello));
      const refilled = Math.floor((performance.now() - from) / PLACE_MS);
      // A busy store may count a request whose answer comes too late for the gateway, which refuses it.
      const late = answers.filter((answer) => answer.status === 503).length;
      // createTenant used one of the ten.
      const served = answers.filter((answer) => answer.status === 200).length;
      expect(served).toBeGreaterThanOrEqual(9 - late);
      expect(served).toBeLessThanOrEqual(9 + refilled);
      const refused = answers.filter((answer) => ![200, 503].includes(answer.status));
      expect(new Set(refused.map((answer) => answer.code))).toEqual(new Set(['requests_limit_exceeded']));
    });

    it('share the limit of concurrent requests, streams included', async () => {
      const tenant = await createTenant(two, 1_000, 'slow');
      // The other gateway knows the key before the first stream begins.
      await known(one, tenant);
      // All streams last longer than the next answer takes, also on a busy machine.
      const slow = { ...hello, stream: true, simulator: { tokensPerSecond: 100, answerTokens: 700 } };
      const running: Promise<Completion>[] = [];
      const stream = (gateway: Ready, begin: () => void) =>
        onceServed(() => complete(gateway, tenant.key, slow, (status) => (status === 200 ? begin() : undefined)));
      const begun = [one, two, one, two].map(
        (gateway) => new Promise<void>((begin) => running.push(stream(gateway, begin))),
      );
      // eslint-disable-next-line no-restricted-syntax -- all have begun, or one has failed
      await Promise.race([Promise.all(begun), Promise.all(running)]);
      expect(await ask(two, tenant.key)).toMatchObject({
        status: 429,
        code: 'concurrency_limit_exceeded',
      });
      expect((await Promise.all(running)).map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
      expect((await ask(one, tenant.key)).status).toBe(200);
    });

    it('answer a repeat of an Idempotency-Key with the first answer of any gateway, and charge it once', async () => {
      const tenant = await createTenant(one, 1_000);
      await known(two, tenant);
      const repeated = async ({ inferenceUrl }: Ready) => {
        const response = await fetch(`${inferenceUrl}/chat/completions`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${tenant.key}`,
            'content-type': 'application/json',
            'idempotency-key': 'the same for all',
          },
          body: JSON.stringify({ model: 'sim', ...hello, max_tokens: 20 }),
        });
        return { status: response.status, text: await response.text() };
      };
      const atOnce = await Promise.all(Array.from({ length: 20 }, (_, i) => repeated(i % 2 ? one : two)));
      // All but one are told to wait, or get the answer. A busy store may refuse some of them.
      for (const { status } of atOnce) expect([200, 409, 503]).toContain(status);
      const answer = (gateway: Ready) =>
        eventually(async () => {
          const { status, text } = await repeated(gateway);
          expect(status).toBe(200);
          return { status, text };
        });
      const repeats = [await answer(one), await answer(two)];
      const served = [...atOnce.filter(({ status }) => status === 200), ...repeats];
      expect(new Set(served.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      await eventually(async () => {
        const books = await ledgerOf(tollgate.database, tenant.id);
        expect(books.charges.size).toBe(1);
      });
    });

    it('share a revocation within a second', async () => {
      const worst: number[] = [];
      for (let round = 0; round < 5; round++) {
        const tenant = await createTenant(one, 100);
        await eventually(async () => expect((await complete(two, tenant.key, hello)).status).toBe(200));
        await answered(() => operator(one).delete(`/_operator/v1/tenants/${tenant.id}/keys/${tenant.keyId}`), 204);
        worst.push(await inForceAfterMs(async () => expect((await ask(two, tenant.key)).status).toBe(401)));
      }
      expect(Math.max(...worst)).toBeLessThan(1_000);
    });

    it('share a budget within a second after it is set, and within a second after it is removed', async () => {
      const worst: number[] = [];
      const tenant = await createTenant(one, 1_000);
      const path = `/_operator/v1/tenants/${tenant.id}/budget`;
      for (let round = 0; round < 3; round++) {
        for (const [monthlyBudgetCents, status, code] of [
          [0, 402, 'budget_reached'],
          [null, 200, undefined],
        ] as const) {
          await answered(() => operator(one).put(path, { monthlyBudgetCents }), 200);
          const took = [one, two].map((gateway) =>
            inForceAfterMs(async () =>
              expect(await ask(gateway, tenant.key)).toMatchObject({ status, ...(code && { code }) }),
            ),
          );
          worst.push(...(await Promise.all(took)));
        }
      }
      expect(Math.max(...worst)).toBeLessThan(1_000);
    });

    it('are independent: if one is killed, the other settles its holds, and the books are right', async () => {
      const tenant = await createTenant(two, 1_000);
      await known(one, tenant);
      await Promise.all([ask(one, tenant.key), ask(two, tenant.key)]);
      const cut = ask(one, tenant.key, {
        ...hello,
        stream: true,
        simulator: { tokensPerSecond: 50, answerTokens: 2_000 },
      });
      cut.catch(() => {});
      await pendingHolds(two, 1);
      await tollgate.killGateway(0);
      await expect(cut).rejects.toThrow();
      expect((await ask(two, tenant.key)).status).toBe(200);
      await reconciled(two);
      await tollgate.start();
    });
  });
}
