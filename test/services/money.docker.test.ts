import { eventually, onceServed } from '@tollgate/testing';
import { call } from '../e2e/deployment';
import { OPERATOR_SECRET, useDeployment } from './deployment';
import { chat, newTenant, operate } from './first-steps';
import type { ServiceProcess } from './service-process';

const SETTLED_TIMEOUT_MS = 30_000;
const deployment = useDeployment();
let gateways: ServiceProcess[];
beforeAll(async () => {
  const others = ['auth', 'metering', 'billing', 'billing'] as const;
  const all = await Promise.all([
    ...(['gateway', 'gateway'] as const).map((app) => deployment.start(app)),
    ...others.map((app) => deployment.start(app)),
  ]);
  gateways = all.slice(0, 2);
});

/** What is safe to repeat: a look, or a booking by its ref. */
const operator = <T>(path: string, body?: unknown) =>
  onceServed(() =>
    call<T>(`${gateways[0]!.addresses.operatorUrl}/_operator/v1${path}`, OPERATOR_SECRET, {
      method: body === undefined ? 'GET' : 'POST',
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
interface Books {
  data: { balanceCents: number; carriedNanos: string; entries: { id: string; type: string; amountCents: number }[] };
}

it('refunds against running requests on two gateways: nothing is spent twice, and each request is found from its entry', async () => {
  const START_CENTS = 300;
  const tenant = await newTenant(gateways[0]!, { amountCents: START_CENTS });
  let [running, refunded, answered] = [6, 0, 0];
  const requests = async (n: number) => {
    for (let i = 0; i < 10; i++) {
      // Requests alone would spend the credit before a first refund is through Kafka: each round waits for one, and runs against the next.
      await eventually(() => expect(answered).toBeGreaterThan(i), { timeoutMs: SETTLED_TIMEOUT_MS });
      const { status } = await chat(gateways[(n + i) % 2]!, tenant.key, {
        max_tokens: 400,
        simulator: { answerTokens: 400 },
      });
      expect([200, 402, 429]).toContain(status);
    }
    running--;
  };
  const refunds = async () => {
    for (let i = 0; running > 0; i++) {
      const amountCents = 1 + (i % 20);
      const { status } = await operator(`/tenants/${tenant.id}/credit/refund`, { amountCents, ref: `r${i}` });
      expect([201, 409]).toContain(status);
      if (status === 201) refunded += amountCents;
      answered++;
    }
  };
  await Promise.all([...[1, 2, 3, 4, 5, 6].map(requests), refunds()]);
  const books = await eventually(
    async () => {
      const { body } = await operator<Books & { data: { spendableCents: number | null } }>(
        `/tenants/${tenant.id}/credit?limit=200`,
      );
      const { balanceCents, carriedNanos, spendableCents } = body.data;
      expect(BigInt(carriedNanos)).toBeLessThan(10_000_000n);
      expect(spendableCents).toBe(BigInt(carriedNanos) > 0n ? balanceCents - 1 : balanceCents);
      return body.data;
    },
    { timeoutMs: SETTLED_TIMEOUT_MS },
  );
  expect(books.balanceCents).toBeGreaterThanOrEqual(0);
  expect(refunded).toBeGreaterThan(0);
  const sum = (type: string) =>
    books.entries.filter((entry) => entry.type === type).reduce((total, entry) => total + entry.amountCents, 0);
  expect(-sum('refund')).toBe(refunded);
  expect(books.balanceCents).toBe(START_CENTS - refunded + sum('usage'));
  const usage = books.entries.find(({ type }) => type === 'usage')!;
  const covered = await operator<{ data: { id: string; event: { model: string } | null }[] }>(
    `/entries/${usage.id}/requests`,
  );
  expect(covered.body.data[0]).toMatchObject({ event: { model: 'sim-large' } });
  const request = await operator<{ data: { entry: { id: string } } }>(`/requests/${covered.body.data[0]!.id}`);
  expect(request.body.data.entry.id).toBe(usage.id);
  expect((await operator('/invoices')).status).toBe(200);
  expect((await operator('/invoices/close', { period: '2020-01' })).body).toEqual({
    data: { invoices: 0, empty: 0, waiting: 0 },
  });
  await operate(gateways[1]!, `/tenants/${tenant.id}/credit/adjust`, { amountCents: 5, ref: 'a', reason: 'test' });
});

it('a request that follows the answer of a top-up runs on it at once, on either gateway', async () => {
  for (let round = 0; round < 20; round++) {
    const [first, second] = [gateways[round % 2]!, gateways[(round + 1) % 2]!];
    const { id } = await operate<{ id: string }>(first, '/tenants', { name: 'Acme' });
    const { key } = await operate<{ key: string }>(first, `/tenants/${id}/keys`, { name: 'test' });
    // Until both know the key, and that there is no credit.
    for (const gateway of gateways) await eventually(async () => expect((await chat(gateway, key)).status).toBe(402));
    await operate(first, `/tenants/${id}/credit`, { amountCents: 100, source: 'manual', ref: id });
    expect((await onceServed(() => chat(second, key, { max_tokens: 1 }))).status).toBe(200);
  }
});
