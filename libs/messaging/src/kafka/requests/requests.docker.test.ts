import { randomBytes, randomUUID } from 'node:crypto';
import { UnavailableError } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { eventually, leastMs, tenantRow, useKafka } from '@tollgate/testing';
import { DEFAULT_REQUEST_DEADLINE_MS, MessagesRefusedError } from '../../messages';
import type { KafkaMessages } from '../kafka-messages';
import { withAdmin } from '../admin/apply-topics';
import { KafkaStore, TEST_BROKER } from '../test-store.fixture';

const kafka = useKafka({
  // How often brokers remove groups without members and offsets; ten minutes by default.
  settings: { ...TEST_BROKER.settings, KAFKA_OFFSETS_RETENTION_CHECK_INTERVAL_MS: '1000' },
});
const SUBJECT = 'auth.tenants.get';
/** Reached only if no replica answers, also on a busy machine where a group is still rebalancing. */
const PATIENT = { deadlineMs: 15_000 };
const AWAY_MS = 3_000;

describe('request–reply on Kafka, with several replicas', () => {
  let store: KafkaStore;
  beforeEach(async () => (store = await KafkaStore.create(kafka.brokers)));
  afterEach(() => store.close());
  async function start(handler?: (tenantId: string) => Promise<ReturnType<typeof tenantRow>>): Promise<KafkaMessages> {
    const messages = store.open();
    if (handler) messages.handle(SUBJECT, ({ tenantId }) => handler(tenantId));
    await messages.start();
    return messages;
  }

  it('gives each requesting replica the replies to its own requests', async () => {
    await Promise.all([start(async (id) => tenantRow(id)), start(async (id) => tenantRow(id))]);
    const asking = await Promise.all([start(), start(), start(), start(), start()]);
    const replies = await Promise.all(
      asking.flatMap((messages, replica) =>
        Array.from({ length: 40 }, async (_, index) => {
          const tenantId = `${replica}-${index}`;
          return (await messages.request(SUBJECT, { tenantId }, PATIENT)).id === tenantId;
        }),
      ),
    );
    expect(replies).toEqual(Array.from({ length: 200 }, () => true));
  });

  it('fails a reply that is too large alone and at once, and refuses a request that is too large', async () => {
    // Not even compression makes it fit.
    const large = randomBytes(1_000_000).toString('base64');
    await start(async (id) => tenantRow(id, id === 'large' ? large : 'any'));
    const asking = await start();
    await asking.request(SUBJECT, { tenantId: 'warm' }, PATIENT);
    const failed = asking.request(SUBJECT, { tenantId: 'large' }, PATIENT).catch((error: unknown) => error);
    const asked = Array.from({ length: 20 }, (_, index) => asking.request(SUBJECT, { tenantId: `t${index}` }, PATIENT));
    expect(await Promise.all(asked)).toHaveLength(20);
    // At its deadline, it would say that there was no answer.
    expect(await failed).toMatchObject({ message: 'the request could not be answered' });
    await expect(asking.request(SUBJECT, { tenantId: large })).rejects.toThrow(MessagesRefusedError);
    await asking.request(SUBJECT, { tenantId: 'after' }, PATIENT);
  });

  it('sends a reply that is larger than a message if compression makes it fit', async () => {
    const group = (index: number) => ({
      keyId: randomUUID(),
      requests: index,
      costNanos: String(index * 977),
      at: 'today',
    });
    const groups = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => group(index)));
    expect(groups.length).toBeGreaterThan(1_500_000);
    await start(async (id) => tenantRow(id, groups));
    const asking = await start();
    expect((await asking.request(SUBJECT, { tenantId: 'a' }, PATIENT)).name).toBe(groups);
  });

  it('reads a reply that arrives before its reader is back, even the very first one', async () => {
    let asked = false;
    let answer = () => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    await start(async (id) => {
      asked = true;
      await held;
      return tenantRow(id);
    });
    const asking = await start();
    const reply = asking.request(SUBJECT, { tenantId: 'a' }, { deadlineMs: 60_000 });
    await eventually(() => expect(asked).toBe(true));
    // Long enough for the reader to give up. It starts again a while later.
    await kafka.kill();
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    await kafka.start();
    answer();
    expect(await reply).toMatchObject({ id: 'a' });
  });

  it('is not blocked by handlers that never return', async () => {
    let hanging = 0;
    await start(async (id) => {
      if (id !== 'hang') return tenantRow(id);
      hanging++;
      return new Promise(() => {});
    });
    const asking = await start();
    await asking.request(SUBJECT, { tenantId: 'first' }, PATIENT);
    let ended = 0;
    const hung = Array.from({ length: 20 }, () =>
      asking
        .request(SUBJECT, { tenantId: 'hang' }, { deadlineMs: 600_000 })
        .catch((error: unknown) => error)
        .finally(() => ended++),
    );
    await eventually(() => expect(hanging).toBe(20));
    const asked = Array.from({ length: 40 }, (_, index) => asking.request(SUBJECT, { tenantId: `t${index}` }, PATIENT));
    expect(await Promise.all(asked)).toHaveLength(40);
    expect(ended).toBe(0);
    await asking.close();
    for (const error of await Promise.all(hung)) expect(error).toBeInstanceOf(UnavailableError);
  });

  it('loses no request to handlers that come and go in an orderly way', async () => {
    await start(async (id) => tenantRow(id, 'first'));
    const asking = await start();
    let ended = false;
    let answered = 0;
    let slowestMs = 0;
    const failures: unknown[] = [];
    const load = Array.from({ length: 4 }, async () => {
      while (!ended) {
        const askedMs = performance.now();
        await asking.request(SUBJECT, { tenantId: 'x' }, { deadlineMs: 20_000 }).then(
          () => answered++,
          (error: unknown) => failures.push(error),
        );
        slowestMs = Math.max(slowestMs, performance.now() - askedMs);
      }
    });
    /** The slowest request while one comes and goes. */
    const comeAndGo = async () => {
      slowestMs = 0;
      const before = answered;
      const guest = await start(async (id) => tenantRow(id, 'guest'));
      await eventually(() => expect(answered).toBeGreaterThan(before + 50));
      await guest.close();
      await eventually(() => expect(answered).toBeGreaterThan(before + 100));
      return slowestMs;
    };
    try {
      for (let round = 0; round < 3; round++)
        expect(await leastMs(DEFAULT_REQUEST_DEADLINE_MS, comeAndGo)).toBeLessThan(DEFAULT_REQUEST_DEADLINE_MS);
    } finally {
      // Also after a failure: the load on a closed client would block the event loop.
      ended = true;
    }
    await Promise.all(load);
    expect(failures).toEqual([]);
  });

  it('does not handle a request past its deadline on a handler that joins late', async () => {
    const asking = await start();
    const late = asking.request(SUBJECT, { tenantId: 'late' }, { deadlineMs: 300 }).catch((error: unknown) => error);
    expect(await late).toBeInstanceOf(UnavailableError);
    const handled: string[] = [];
    await start(async (id) => {
      handled.push(id);
      return tenantRow(id);
    });
    await eventually(() => asking.request(SUBJECT, { tenantId: 'now' }));
    await eventually(async () => {
      const { values } = await metrics.getSingleMetric('tollgate_requests_expired_total')!.get();
      expect(values[0]?.value).toBeGreaterThan(0);
    });
    // Requests that are repeated because no handler had joined yet may be handled more than once.
    expect(handled).toContain('now');
    expect(handled).not.toContain('late');
  });
});

describe('the group in which a replica reads its replies', () => {
  const TIDY_TIMEOUT_MS = 150_000;

  it(
    'disappears with it: removed by itself at the end, or by the brokers where the process died',
    async () => {
      const store = await KafkaStore.create(kafka.brokers);
      const groups = () =>
        withAdmin(store.connection, TIDY_TIMEOUT_MS, async (admin) =>
          (await admin.listGroups()).groups
            .map(({ groupId }) => groupId)
            .filter((id) => id.startsWith(`${store.prefix}replies.`)),
        );
      const lasting = store.open();
      await lasting.start();
      const [own] = await groups();
      const dying = await store.spawnConsumer(0);
      await eventually(async () => expect(await groups()).toHaveLength(2), { timeoutMs: TIDY_TIMEOUT_MS });
      await dying.kill();
      // When its session is over. The group of a reading replica remains.
      await eventually(async () => expect(await groups()).toEqual([own]), {
        timeoutMs: TIDY_TIMEOUT_MS,
        everyMs: 500,
      });
      await lasting.close();
      await eventually(async () => expect(await groups()).toEqual([]), { timeoutMs: TIDY_TIMEOUT_MS });
      await store.close();
    },
    2 * TIDY_TIMEOUT_MS,
  );
});
