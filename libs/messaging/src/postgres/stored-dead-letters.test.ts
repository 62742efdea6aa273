import { eventually, useTestDatabase } from '@tollgate/testing';
import { seal } from '../envelope';
import { balanceUpdate, Received, SECOND_GROUP, SUITE_GROUP, SUITE_TOPICS, TOPIC } from '../messages-store.fixture';
import type { PostgresMessages } from './postgres-messages';
import { listStoredDead, replayStoredDead, storedOriginOf } from './stored-dead-letters';
import { PostgresStore } from './test-store.fixture';

const database = useTestDatabase();
const QUEUE = `${TOPIC}.${SUITE_GROUP}`;

describe('quarantined messages in PostgreSQL', () => {
  let store: PostgresStore;
  let messages: PostgresMessages;
  const received = new Received();
  /** Refuses until it is told to read. */
  let reads = false;
  const place = () => ({ url: database.url, schema: store.schema, topics: SUITE_TOPICS });
  const list = async (limit?: number) => listStoredDead(place(), { topic: TOPIC, ...(limit && { limit }) });
  const origins = async () => (await list()).letters.map(storedOriginOf);
  const versions = () => received.messages.map(({ version }) => Number(version));

  beforeAll(async () => {
    store = new PostgresStore(database);
    messages = store.open();
    const validate = () => (reads ? null : 'not yet');
    messages.consume(TOPIC, SUITE_GROUP, received.handler, { validate });
    messages.consume(TOPIC, SECOND_GROUP, () => Promise.resolve());
    await messages.start();
  });
  afterAll(async () => {
    await messages.close();
    await store.close();
  });

  it('are listed, the oldest first, with their origin, reason and text', async () => {
    for (const version of [1, 2, 3]) {
      await messages.publish(TOPIC, [balanceUpdate('a', version)]);
      await eventually(async () => expect((await list()).letters).toHaveLength(version));
    }
    const { letters, left } = await list();
    expect(left).toBe(0);
    for (const [index, letter] of letters.entries()) {
      expect(letter).toMatchObject({ topic: TOPIC, group: SUITE_GROUP, reason: 'not yet' });
      expect(storedOriginOf(letter)).toBe(`${SUITE_GROUP}/${letter.id}`);
      expect(Date.parse(letter.at)).not.toBeNaN();
      expect(JSON.parse(letter.message)).toMatchObject({ data: balanceUpdate('a', index + 1) });
    }
    expect(await list(2)).toEqual({ letters: letters.slice(0, 2), left: 1 });
    expect((await listStoredDead(place())).letters).toEqual(letters);
  });

  it('stay as they are if one of those to replay is not there', async () => {
    const before = await list();
    const unknown = `${SUITE_GROUP}/00000000-0000-8000-a000-000000000000`;
    const [first] = await origins();
    for (const wrong of [unknown, 'none', `${SECOND_GROUP}/${before.letters[0]!.id}`])
      expect(await replayStoredDead(place(), TOPIC, [first!, wrong])).toEqual({ replayed: [], missing: [wrong] });
    expect(await list()).toEqual(before);
    expect(await store.waiting()).toBe(0);
  });

  it('that still cannot be read are quarantined again', async () => {
    const [first] = await origins();
    expect(await replayStoredDead(place(), TOPIC, [first!])).toEqual({ replayed: [first], missing: [] });
    await eventually(async () => expect(await origins()).toHaveLength(3));
    expect(await origins()).not.toContain(first);
  });

  it('reach their group once and no other, however many replay them at once', async () => {
    reads = true;
    // What was not a batch comes back as it was, and is none again.
    await store.insert(QUEUE, { messages: 'none' });
    await eventually(async () => expect(await origins()).toHaveLength(4));
    const all = await origins();
    const runs = await Promise.all(Array.from({ length: 5 }, () => replayStoredDead(place(), TOPIC, 'all')));
    expect(
      runs
        .flatMap(({ replayed }) => replayed)
        .filter((origin) => all.includes(origin))
        .sort(),
    ).toEqual(all.sort());
    await eventually(() => expect(versions().sort()).toEqual([1, 2, 3]));
    await eventually(async () => {
      expect((await list()).letters.map(({ message }) => JSON.parse(message))).toEqual([{ messages: 'none' }]);
      expect(await store.waiting()).toBe(0);
    });
    expect(versions()).toHaveLength(3);
  });

  it('are replayed in the order of their quarantine', async () => {
    reads = false;
    for (const version of [11, 12, 13, 14]) {
      await store.insert(QUEUE, { messages: seal(SUITE_TOPICS[TOPIC], [balanceUpdate('a', version)]) });
      await eventually(async () => expect(await origins()).toHaveLength(version - 9));
    }
    reads = true;
    await replayStoredDead(place(), TOPIC, 'all');
    await eventually(() => expect(versions().slice(3)).toEqual([11, 12, 13, 14]));
  });
});
