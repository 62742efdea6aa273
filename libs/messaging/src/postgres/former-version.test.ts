import { randomUUID } from 'node:crypto';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import { PgBoss } from 'pg-boss';
import { seal } from '../envelope';
import { balanceUpdate, Received, SECOND_GROUP, SUITE_GROUP, SUITE_TOPICS, TOPIC } from '../messages-store.fixture';
import type { PostgresMessages } from './postgres-messages';
import { PostgresStore } from './test-store.fixture';

const QUEUE = `${TOPIC}.${SUITE_GROUP}`;
const database = useTestDatabase();

/** The messages of the former version: a job of pg-boss for each publish call and group. */
describe('PostgresMessages on a database of the former version', () => {
  let store: PostgresStore;
  let boss: PgBoss;
  let opened: PostgresMessages[];

  beforeEach(async () => {
    store = new PostgresStore(database);
    opened = [];
    boss = new PgBoss({
      connectionString: database.url,
      schema: store.formerSchema,
      supervise: false,
      schedule: false,
      useListenNotify: true,
    });
    await boss.start();
    for (const group of [SUITE_GROUP, SECOND_GROUP]) {
      await boss.createQueue(`${TOPIC}.${group}.dead`);
      await boss.createQueue(`${TOPIC}.${group}`, { notify: true });
    }
  });
  afterEach(async () => {
    await Promise.all(opened.map((messages) => messages.close()));
    await boss.stop({ graceful: false });
    await store.close();
  });

  /** As the former version published. All jobs of a call have one time, and ascending ids. */
  async function publishAsBefore(versions: number[], jobs = 1): Promise<void> {
    const stem = randomUUID().slice(0, -12);
    const envelopes = seal(
      SUITE_TOPICS[TOPIC],
      versions.map((version) => balanceUpdate('a', version)),
    );
    const perJob = Math.ceil(envelopes.length / jobs);
    const inserted = Array.from({ length: jobs }, (_, n) => ({
      id: stem + n.toString(16).padStart(12, '0'),
      data: { messages: envelopes.slice(n * perJob, (n + 1) * perJob) },
    }));
    for (const group of [SUITE_GROUP, SECOND_GROUP]) await boss.insert(`${TOPIC}.${group}`, inserted);
  }
  async function consume(group: string): Promise<Received> {
    const received = new Received();
    const messages = store.open();
    opened.push(messages);
    messages.consume(TOPIC, group, received.handler);
    await messages.start();
    return received;
  }
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);
  const jobs = () => database.query(`SELECT FROM ${store.formerSchema}.job`);

  it('consumes all waiting messages of every group, in order, before newer ones', async () => {
    for (let version = 1; version <= 300; version++) await publishAsBefore([version]);
    await publishAsBefore(range(301, 3_000), 450);
    await (await open()).publish(TOPIC, [balanceUpdate('a', 3_001)]);
    for (const group of [SUITE_GROUP, SECOND_GROUP]) {
      const received = await consume(group);
      // A newer message is behind those that wait.
      await eventually(() => expect(new Set(received.messages.map(({ version }) => version)).size).toBe(3_001));
      const former = received.messages.map(({ version }) => Number(version)).filter((version) => version <= 3_000);
      expect(former).toEqual(range(1, 3_000));
    }
    expect(await jobs()).toEqual([]);
  });

  it('keeps what the former version quarantined', async () => {
    const dead = { reason: 'version 9', message: { id: 'msg_1', v: 9 } };
    // The second one was put there by hand.
    await boss.insert(`${QUEUE}.dead`, [{ data: dead }, { data: {} }]);
    await consume(SUITE_GROUP);
    await eventually(async () => expect(await store.dead(TOPIC, SUITE_GROUP)).toHaveLength(2));
    expect(await store.dead(TOPIC, SUITE_GROUP)).toEqual(expect.arrayContaining([dead, { reason: '', message: null }]));
    expect(await jobs()).toEqual([]);
  });

  it('waits for a consumer of the former version, and consumes what its processes still publish', async () => {
    const former = new Client({ connectionString: database.url });
    await former.connect();
    try {
      await former.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [
        `tollgate-messages ${store.formerSchema}.${QUEUE}`,
      ]);
      await publishAsBefore([1]);
      const received = await consume(SUITE_GROUP);
      const other = await consume(SECOND_GROUP);
      await eventually(() => other.assertAllInOrder(['a'], 1));
      expect(received.messages).toEqual([]);
      await former.query('SELECT pg_advisory_unlock_all()');
      await eventually(() => received.assertAllInOrder(['a'], 1));
      await publishAsBefore([2]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
    } finally {
      await former.end();
    }
  });

  async function open(): Promise<PostgresMessages> {
    const messages = store.open();
    opened.push(messages);
    await messages.start();
    return messages;
  }
});
