import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import type { Charge } from '@tollgate/contracts';
import { Messages, OUTBOX_TABLE_SQL, PostgresMessages } from '@tollgate/messaging';
import { Global, Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { MeteringModule, MIGRATIONS } from './index';
import { TENANT, usageEvent } from './sample-events.suite';

// Real: the module as a main program composes it, on Postgres.
let app: INestApplicationContext;
let messages: PostgresMessages;
let store: PostgresAdmissionStore;
const charges: Charge[] = [];

async function stop(): Promise<void> {
  await messages.stopConsuming();
  await app.close();
  await messages.close();
  await store.close();
}
afterAll(stop);
const database = useTestDatabase();

async function start(): Promise<void> {
  messages = new PostgresMessages({ url: database.url, applicationName: 'test-messages' });
  store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  await store.start();
  messages.consume('charges', 'billing', async (batch) => {
    charges.push(...batch);
  });
  const seams = [
    { provide: Messages, useValue: messages },
    { provide: AdmissionStore, useValue: store },
  ];
  @Global()
  @Module({ providers: seams, exports: [Messages, AdmissionStore] })
  class Seams {}
  @Module({ imports: [Seams, MeteringModule.register({ databaseUrl: database.url, sweepIntervalMs: 50 })] })
  class Main {}
  app = await NestFactory.createApplicationContext(Main, { logger: false });
  await messages.start();
}
beforeAll(start);

const query = () =>
  messages.request('metering.usage.query', { tenantId: TENANT, from: '2020-01-01', to: '2100-01-01', groupBy: [] });

describe('the metering module', () => {
  it('turns published usage into charges, once, and answers for it', async () => {
    const events = Array.from({ length: 30 }, () => usageEvent());
    await messages.publish('usage-events', events);
    await messages.publish('usage-events', events.slice(0, 1));
    await eventually(() => expect(new Set(charges.map(({ id }) => id))).toEqual(new Set(events.map(({ id }) => id))));
    const nanos = 30 * Number(usageEvent().costNanos);
    expect((await query()).totals).toEqual({
      requests: 30,
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
    const homes = await database.query(`SELECT DISTINCT tableoid::regclass::text AS home FROM metering.usage_event`);
    expect(homes).toEqual([{ home: expect.stringMatching(/usage_event_\d{4}_\d\d$/) }]);
  });

  it('leaves nothing behind when it stops, and goes on where it was', async () => {
    const event = usageEvent();
    await messages.publish('usage-events', [event]);
    await stop();
    expect(await database.query('SELECT 1 FROM metering.outbox')).toEqual([]);
    await start();
    await eventually(() => expect(charges.map(({ id }) => id)).toContain(event.id));
    expect((await query()).totals.requests).toBe(31);
  });
});

it('makes the outbox that the relay expects', () => {
  expect(readFileSync(join(MIGRATIONS.directory, '001_usage.sql'), 'utf8')).toContain(OUTBOX_TABLE_SQL);
});
