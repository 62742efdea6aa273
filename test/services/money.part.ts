import { mintCredential, newId } from '@tollgate/contracts';
import { eventually, onceServed } from '@tollgate/testing';
import { Publisher } from '../../libs/messaging/src/kafka/publish/publisher';
import { call } from '../e2e/deployment';
import { connected, ledgerOf } from '../e2e/fixtures';
import { charge, balanceUpdate, usageEvent } from '../recovery/events';
import { envelope, json } from '../recovery/poison';
import { OPERATOR_SECRET, type Deployment, type Replicas } from './deployment';
import { chat, newTenant, operate } from './first-steps';

const SETTLED_TIMEOUT_MS = 30_000;
/** From a settlement through Kafka, metering and billing, soon after their start. */
const CHARGED_TIMEOUT_MS = 60_000;
interface Books {
  data: { balanceCents: number; carriedNanos: string; entries: { id: string; type: string; amountCents: number }[] };
}

/** Runs on two gateways and two replicas of billing. */
export function moneyTests(deployment: Deployment, replicas: Replicas): void {
  const gateways = replicas.gateway;

  /** Sends a request that is safe to repeat: a GET, or a booking with a ref. */
  const operator = <T>(path: string, body?: unknown) =>
    onceServed(() =>
      call<T>(`${gateways[0]!.addresses.operatorUrl}/_operator/v1${path}`, OPERATOR_SECRET, {
        method: body === undefined ? 'GET' : 'POST',
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );

  it('a repeat of an Idempotency-Key costs nothing on either gateway, and Redis has its answer encrypted', async () => {
    const tenant = await newTenant(gateways[0]!);
    const body = JSON.stringify({ model: 'sim-large', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 50 });
    const ask = async (n: number) => {
      const response = await fetch(`${gateways[n % 2]!.addresses.publicUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tenant.key}`,
          'content-type': 'application/json',
          'idempotency-key': 'one request',
        },
        body,
      });
      return { status: response.status, text: await response.text() };
    };
    const first = await onceServed(() => ask(0));
    expect(first.status).toBe(200);
    for (let n = 1; n < 5; n++) expect(await onceServed(() => ask(n))).toEqual(first);
    const { content } = (JSON.parse(first.text) as { choices: { message: { content: string } }[] }).choices[0]!.message;
    const { redis, postgres } = deployment;
    const kept = await Promise.all(
      ['claims', 'answers'].map((name) =>
        redis.exec(['redis-cli', '-p', String(redis.port), 'HGETALL', `tga:{${tenant.id}}:${name}`]),
      ),
    );
    expect(kept[1]!.length).toBeGreaterThan(content.length / 4);
    for (const plain of [content, 'one request', tenant.key]) expect(kept.join('\n')).not.toContain(plain);
    await eventually(
      async () => {
        const { charges } = await ledgerOf((work) => connected({ connectionString: postgres.url }, work), tenant.id);
        // With that of newTenant.
        expect(charges.size).toBe(2);
      },
      { timeoutMs: CHARGED_TIMEOUT_MS },
    );
  });

  it('refunds beside running requests on two gateways never spend twice, and each request has its entry', async () => {
    const START_CENTS = 300;
    const tenant = await newTenant(gateways[0]!, { amountCents: START_CENTS });
    let [running, refunded, answered] = [6, 0, 0];
    const requests = async (n: number) => {
      for (let i = 0; i < 10; i++) {
        // Without waiting, the requests would spend the credit before the first refund has passed Kafka. So each round
        // waits for one refund and competes with the next.
        await eventually(() => expect(answered).toBeGreaterThan(i), { timeoutMs: SETTLED_TIMEOUT_MS });
        const body = { max_tokens: 400, simulator: { answerTokens: 400 } };
        const { status } = await onceServed(() => chat(gateways[(n + i) % 2]!, tenant.key, body));
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

  it('a request after the answer of a top-up can use it at once, on either gateway', async () => {
    for (let round = 0; round < 20; round++) {
      const [first, second] = [gateways[round % 2]!, gateways[(round + 1) % 2]!];
      const { id } = await operate<{ id: string }>(first, '/tenants', { name: 'Acme' });
      const { key } = await operate<{ key: string }>(first, `/tenants/${id}/keys`, { name: 'test' });
      // Until both gateways know the key and its lack of credit.
      for (const gateway of gateways) await eventually(async () => expect((await chat(gateway, key)).status).toBe(402));
      await operate(first, `/tenants/${id}/credit`, { amountCents: 100, source: 'manual', ref: id });
      expect((await onceServed(() => chat(second, key, { max_tokens: 1 }))).status).toBe(200);
    }
  });

  it('messages without a valid signature book, charge, suspend and create nothing, and are counted', async () => {
    const START_CENTS = 300;
    /** More than all requests of this test cost, and less than the forged amounts. */
    const SERVED_CENTS = 50;
    const FORGED_COST = { costNanos: '2000000000' };
    const tenant = await newTenant(gateways[0]!, { amountCents: START_CENTS });
    const own = mintCredential('key');
    const publisher = new Publisher({ brokers: deployment.kafka.brokers, clientId: 'test' });
    const put = async (topic: string, ...values: object[]) => {
      const messages = values.map((data) => ({ key: tenant.id, value: json(envelope(data)) }));
      await publisher.send({ topic, messages });
    };
    const ask = async (subject: string, request: object) => {
      const id = newId('msg');
      const headers = {
        'tollgate-request': id,
        'tollgate-version': '1',
        'tollgate-reply-partition': '0',
        'tollgate-deadline': String(Date.now() + 60_000),
        'tollgate-partition': '0',
        'tollgate-asked': String(Date.now()),
      };
      const message = {
        key: id,
        partition: 0,
        value: json({ subject, request: { tenantId: tenant.id, ...request } }),
        headers,
      };
      await publisher.send({ topic: `requests.${subject.split('.')[0]}`, messages: [message] });
    };
    const rich = balanceUpdate(tenant.id, 999_999_999, 9_000_000_000_000n);
    try {
      await put('credit-news', rich, { ...rich, version: '1999999999', suspended: true });
      await put('tenant-news', { tenantId: tenant.id, version: 1_000, status: 'suspended' });
      await put('charges', charge(tenant.id, FORGED_COST));
      await put('usage-events', usageEvent(tenant.id, FORGED_COST));
      await ask('billing.credit.add', { amountCents: 123_456, source: 'manual', ref: 'forged' });
      await ask('billing.tenants.tell', { version: 1_000, status: 'suspended' });
      await ask('auth.keys.create', { name: 'forged', hash: own.hash, last4: own.last4 });
    } finally {
      await publisher.close();
    }
    const expected = {
      'credit-news': 2,
      'tenant-news': 1,
      charges: 1,
      'usage-events': 1,
      'requests.billing': 2,
      'requests.auth': 1,
    };
    await eventually(
      async () => {
        const text = (
          await Promise.all(
            Object.values(replicas)
              .flat()
              .map((service) => service.metrics()),
          )
        ).join('\n');
        const counted: Record<string, number> = {};
        for (const [, topic, count] of text.matchAll(/^tollgate_messages_forged_total\{topic="([^"]+)".*\} (\d+)$/gm))
          counted[topic!] = (counted[topic!] ?? 0) + Number(count);
        expect(counted).toEqual(expected);
      },
      { timeoutMs: SETTLED_TIMEOUT_MS },
    );
    expect((await onceServed(() => chat(gateways[1]!, own.value))).status).toBe(401);
    for (const gateway of gateways)
      expect((await onceServed(() => chat(gateway, tenant.key, { max_tokens: 1 }))).status).toBe(200);
    // A genuine top-up is in force although its version is far lower. The books have only the tenant's real requests.
    const topUp = { amountCents: 100, source: 'manual', ref: 'genuine' };
    expect((await operator(`/tenants/${tenant.id}/credit`, topUp)).status).toBe(201);
    const { data } = (
      await operator<Books & { data: { spendableCents: number | null } }>(`/tenants/${tenant.id}/credit?limit=200`)
    ).body;
    const added = data.entries.filter(({ type }) => type !== 'usage').map(({ amountCents }) => amountCents);
    expect(added.sort()).toEqual([topUp.amountCents, START_CENTS]);
    for (const cents of [data.balanceCents, data.spendableCents]) {
      expect(cents).toBeLessThanOrEqual(START_CENTS + topUp.amountCents);
      expect(cents).toBeGreaterThan(START_CENTS + topUp.amountCents - SERVED_CENTS);
    }
  });
}
