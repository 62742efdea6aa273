import { eventually, onceServed } from '@tollgate/testing';
import { operator, type Deployment, type Ready } from './deployment';
import { answered, complete, costOf, createTenant, PRICE, type Completion } from './fixtures';
import { reconciled } from './reconcile';

const STREAMS = 3;

/** Gathered charges are posted within a second. The rest is for a busy machine. */
const POSTED_TIMEOUT_MS = 20_000;

async function balanceOf(ready: Ready, tenantId: string): Promise<{ balanceCents: number; carriedNanos: string }> {
  const path = `/_operator/v1/tenants/${tenantId}/credit`;
  const ask = () => operator(ready).get<{ data: { balanceCents: number; carriedNanos: string } }>(path);
  return (await answered(ask, 200)).data;
}

/**
 * One chat. A 503 is repeated, as Retry-After tells the client, because it does not depend on the credit.
 */
const asked = (ready: Ready, key: string, body: Record<string, unknown>) =>
  onceServed(() => complete(ready, key, body));

/** Sends `total` requests, `atOnce` at a time. A request that is refused for its credit is not repeated. */
async function fire(ready: Ready, total: number, atOnce: number, key: string, body: Record<string, unknown>) {
  let left = total;
  const answers: Completion[] = [];
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) answers.push(await asked(ready, key, body));
    }),
  );
  return answers;
}

/**
 * A chat that costs exactly one cent (10,000,000 nanos), so that a credit in cents pays for that number of chats.
 */
async function requestOfOneCent(ready: Ready): Promise<Record<string, unknown>> {
  const measuring = await createTenant(ready, 1_000);
  for (let words = 1; words < 20; words++) {
    const messages = [{ role: 'user', content: 'word '.repeat(words).trim() }];
    const { status, promptTokens } = await asked(ready, measuring.key, { messages, max_tokens: 1 });
    expect(status).toBe(200);
    const output = (1e7 - promptTokens * PRICE.input) / PRICE.output;
    if (Number.isInteger(output)) return { messages, max_tokens: output };
  }
  throw new Error('no prompt has a suitable length');
}

export function overspendSuite(tollgate: Deployment): void {
  describe('credit for exactly 20 requests, 400 fired at 64 at once', () => {
    it.each([
      ['plain', false],
      ['streamed', true],
    ])('gives exactly 20 answers (%s), and the balance does not go below zero', async (_name, stream) => {
      const body = await requestOfOneCent(tollgate.ready);
      const tenant = await createTenant(tollgate.ready, 20);

      const answers = await fire(tollgate.ready, 400, 64, tenant.key, {
        ...body,
        stream,
        simulator: { firstTokenDelayMs: 5, answerTokens: 4_000 },
      });

      const served = answers.filter((answer) => answer.status === 200);
      expect(served.map(costOf)).toEqual(Array.from({ length: 20 }, () => 1e7));
      const refusals = answers
        .filter((answer) => answer.status !== 200)
        .map((answer) => `${answer.status} ${answer.code}`);
      expect(refusals).toHaveLength(380);
      expect(refusals.filter((refusal) => !['402 credit_exhausted', '429 credit_held'].includes(refusal))).toEqual([]);
      await reconciled(tollgate.ready);
      await eventually(
        async () =>
          expect(await balanceOf(tollgate.ready, tenant.id)).toMatchObject({ balanceCents: 0, carriedNanos: '0' }),
        { timeoutMs: POSTED_TIMEOUT_MS },
      );
    });
  });

  describe('a long stream without max_tokens', () => {
    it('ends normally when the credit is used up, with less than one token left', async () => {
      const tenant = await createTenant(tollgate.ready, 5);
      const answer = await asked(tollgate.ready, tenant.key, {
        messages: [{ role: 'user', content: 'go on' }],
        stream: true,
        simulator: { answerTokens: 4_000 },
      });
      expect(answer).toMatchObject({ status: 200, finishReason: 'length' });
      // Fewer than the 4,000 tokens of the model, and more than one slice.
      expect(answer.completionTokens).toBeGreaterThan(2_000);
      expect(answer.completionTokens).toBeLessThan(4_000);
      await reconciled(tollgate.ready);
      const { balanceCents, carriedNanos } = await balanceOf(tollgate.ready, tenant.id);
      const remainder = balanceCents * 1e7 - Number(carriedNanos);
      expect(remainder).toBeGreaterThanOrEqual(0);
      expect(remainder).toBeLessThan(PRICE.output);
    });

    it('ends normally beside others, with less than one token for each left, plus one', async () => {
      const tenant = await createTenant(tollgate.ready, 10);
      // All hold their first slice before any has a token. Then they compete for the remaining credit.
      const answers = await fire(tollgate.ready, STREAMS, STREAMS, tenant.key, {
        messages: [{ role: 'user', content: 'go on' }],
        stream: true,
        simulator: { firstTokenDelayMs: 4_000, answerTokens: 4_000 },
      });
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 200, finishReason: 'length' });
        expect(answer.completionTokens).toBeGreaterThanOrEqual(1_000);
      }
      await reconciled(tollgate.ready);
      const { balanceCents, carriedNanos } = await balanceOf(tollgate.ready, tenant.id);
      expect(balanceCents).toBeGreaterThanOrEqual(0);
      const remainder = balanceCents * 1e7 - Number(carriedNanos);
      expect(remainder).toBeGreaterThanOrEqual(0);
      expect(remainder).toBeLessThan((STREAMS + 1) * PRICE.output);
    });
  });
}

/** The same guarantee at all gateways at once, with several keys of the tenant, plain and streamed. */
export function sharedOverspendSuite(tollgate: Deployment): void {
  it('credit for exactly 20 requests gives exactly 20 answers to 400 at several gateways and keys', async () => {
    const body = await requestOfOneCent(tollgate.ready);
    const tenant = await createTenant(tollgate.ready, 20);
    const keys = [tenant.key, await anotherKey(tollgate.ready, tenant.id), await anotherKey(tollgate.ready, tenant.id)];
    const { gateways } = tollgate;
    let fired = 0;
    const answers: Completion[] = [];
    await Promise.all(
      Array.from({ length: 64 }, async () => {
        for (let n = fired++; n < 400; n = fired++) {
          const simulator = { firstTokenDelayMs: 5, answerTokens: 4_000 };
          const request = { ...body, stream: n % 3 === 0, simulator };
          answers.push(await asked(gateways[n % gateways.length]!, keys[n % keys.length]!, request));
        }
      }),
    );
    const served = answers.filter((answer) => answer.status === 200);
    expect(served.map(costOf)).toEqual(Array.from({ length: 20 }, () => 1e7));
    const refusals = new Set(
      answers.filter(({ status }) => status !== 200).map(({ status, code }) => `${status} ${code}`),
    );
    expect([...refusals].filter((refusal) => !['402 credit_exhausted', '429 credit_held'].includes(refusal))).toEqual(
      [],
    );
    expect(answers).toHaveLength(400);
    await reconciled(tollgate.ready);
    await eventually(
      async () =>
        expect(await balanceOf(tollgate.ready, tenant.id)).toMatchObject({ balanceCents: 0, carriedNanos: '0' }),
      { timeoutMs: POSTED_TIMEOUT_MS },
    );
  });
}

async function anotherKey(ready: Ready, tenantId: string): Promise<string> {
  const path = `/_operator/v1/tenants/${tenantId}/keys`;
  const { data } = await answered(
    () => operator(ready).post<{ data: { key: string } }>(path, { name: 'another' }),
    201,
  );
  // The suspension is in force at every gateway within a second. A refused request costs nothing.
  await eventually(async () =>
    expect((await complete(ready, data.key, { messages: [], max_tokens: 1 })).status).not.toBe(401),
  );
  return data.key;
}
