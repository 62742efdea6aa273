import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import type { Charge } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { eventually, OUTBOX_TABLE_SQL, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { FileConfigSource, globalModule, provide, stampPrice } from '@tollgate/runtime';
import { MeteringModule, MIGRATIONS } from './index';
import type { MeteringOptions } from './options';
import { ANY_PRICE, TENANT, usageEvent } from './sample-events.fixture';

// Real: the module as a main program composes it, on PostgreSQL.
let app: INestMicroservice;
let messages: PostgresMessages;
let store: PostgresAdmissionStore;
const charges: Charge[] = [];

async function stop(): Promise<void> {
  await app.close();
  await messages.close();
  await store.close();
}
afterAll(stop);
const database = useTestDatabase();

async function start(options: Partial<MeteringOptions> = { prices: ANY_PRICE }): Promise<void> {
  messages = new PostgresMessages({ url: database.url, applicationName: 'test-messages' });
  store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  await store.start();
  messages.consume('charges', 'billing', async (batch) => {
    charges.push(...batch);
  });
  const seams = globalModule([provide(AdmissionStore, store)]);
  const metering = MeteringModule.register({ databaseUrl: database.url, sweepIntervalMs: 50, ...options });
  app = await NestFactory.createMicroservice(
    { module: class Main {}, imports: [MessagesModule.of(messages), seams, metering] },
    { strategy: new MessagesServer(messages), logger: false },
  );
  await app.listen();
}
beforeAll(() => start());

const query = () =>
  messages.request('metering.usage.query', { tenantId: TENANT, from: '2020-01-01', to: '2100-01-01', groupBy: [] });

describe('the metering module', () => {
  it('turns published usage into charges, once, and answers queries about it', async () => {
    const events = Array.from({ length: 30 }, () => usageEvent());
    await messages.publish('usage-events', events);
    await messages.publish('usage-events', events.slice(0, 1));
    await eventually(() => expect(new Set(charges.map(({ id }) => id))).toEqual(new Set(events.map(({ id }) => id))));
    const nanos = 30 * Number(usageEvent().costNanos);
    expect((await query()).totals).toEqual({
      ...{ requests: 30, failed: 0, clientClosed: 0, cachedTokens: 600, reasoningTokens: 0, costNanos: String(nanos) },
      promptTokens: 3_000,
      completionTokens: 1_500,
      totalTokens: 4_500,
      costCents: Math.round(nanos / 10_000_000),
    });
    const range = { after: '', limit: 100 };
    expect(await messages.request('metering.events.digest', range)).toMatchObject({
      events: 30,
      costNanos: String(nanos),
      end: null,
    });
    expect((await messages.request('metering.events.list', range)).data).toHaveLength(30);
    expect(await messages.request('metering.rollups.audit', {})).toEqual({ differences: [], nextCursor: null });
    // Each is in the partition of its month, whether or not one ended meanwhile.
    const homes = await database.query(`SELECT tableoid::regclass::text AS home FROM metering.usage_event`);
    expect(homes).toEqual(events.map(() => ({ home: expect.stringMatching(/usage_event_\d{4}_\d\d$/) })));
  });

  it('leaves nothing running when it stops, and continues afterwards where it was', async () => {
    const event = usageEvent();
    await messages.publish('usage-events', [event]);
    await stop();
    expect(await database.query('SELECT 1 FROM metering.outbox')).toEqual([]);
    await start();
    await eventually(() => expect(charges.map(({ id }) => id)).toContain(event.id));
    expect((await query()).totals.requests).toBe(31);
  });

  it('records usage whose price it learns later, without a redelivery', async () => {
    await stop();
    const file = join(mkdtempSync(join(tmpdir(), 'metering-')), 'tollgate.yaml');
    const write = (output: string) =>
      writeFileSync(
        file,
        `models:
  - id: m
    kind: chat
    contextTokens: 100
    maxOutputTokens: 100
    price: { input: '1', output: '${output}' }
    backends: [{ url: 'simulator:' }]
plans:
  - id: p
    limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 }
    profiles: [{ id: q, limits: { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 } }]
`,
      );
    write('2');
    const config = new FileConfigSource(file, {}, 20);
    await start({ config, simulatorUrl: 'http://127.0.0.1:1/v1' });
    try {
      const price = stampPrice({ input: '1', output: '3', request: '0' }, 'chat');
      const event = usageEvent({ model: 'm', price });
      await messages.publish('usage-events', [event]);
      const quarantined = () => database.query('SELECT event_id FROM metering.rejected_event');
      await eventually(async () => expect(await quarantined()).toEqual([{ event_id: event.id }]));
      expect((await messages.request('metering.rejected.audit', {})).differences).toMatchObject([{ ids: [event.id] }]);
      write('3');
      await eventually(() =>
        expect(charges).toContainEqual(expect.objectContaining({ id: event.id, costNanos: event.costNanos })),
      );
      expect(await messages.request('metering.rejected.audit', {})).toEqual({ differences: [] });
    } finally {
      config.close();
    }
  });
});

it('metering creates the outbox table that the relay expects', () => {
  expect(readFileSync(join(MIGRATIONS.directory, '001_usage.sql'), 'utf8')).toContain(OUTBOX_TABLE_SQL);
});
