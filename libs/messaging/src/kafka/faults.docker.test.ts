import { once } from 'node:events';
import { createServer } from 'node:net';
import { RequestError, UnavailableError, type BalanceUpdate } from '@tollgate/contracts';
import { WakeableDelay } from '@tollgate/runtime';
import { elapsedMs, eventually, leastMs, useKafka } from '@tollgate/testing';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../messages-store.fixture';
import { KafkaMessages, type KafkaMessagesOptions } from './kafka-messages';
import { TEST_IDENTITY } from './sign/test-identity.fixture';
import { KafkaStore, TEST_BROKER } from './test-store.fixture';

const PAUSE_MS = 5_000;
const kafka = useKafka(TEST_BROKER);

describe('messages on Kafka while Kafka and consumers come and go', () => {
  let store: KafkaStore;
  beforeEach(async () => (store = await KafkaStore.create(kafka.brokers)));
  afterEach(() => store.close());
  async function start(
    handler?: (messages: readonly BalanceUpdate[]) => Promise<void>,
    options: Partial<KafkaMessagesOptions> = {},
  ): Promise<KafkaMessages> {
    const messages = store.open(options);
    if (handler) messages.consume(TOPIC, SUITE_GROUP, handler);
    await messages.start();
    return messages;
  }
  const tenants = Array.from({ length: 12 }, (_, index) => `t${index}`);

  /**
   * Publishes one version after the other for all tenants, repeating each until it is durable. Resolves to the last
   * version when told to end.
   */
  async function publishing(publisher: KafkaMessages, ended: () => boolean): Promise<number> {
    let version = 0;
    while (!ended()) {
      version++;
      const batch = tenants.map((tenant) => balanceUpdate(tenant, version));
      await eventually(() => publisher.publish(TOPIC, batch), { timeoutMs: 60_000 });
    }
    return version;
  }

  it.each([
    [
      'paused for 5 s',
      async () => {
        await kafka.pause();
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        await kafka.unpause();
      },
    ],
    ['stopped and started', async () => (await kafka.stop(), await kafka.start())],
    ['killed and started', async () => (await kafka.kill(), await kafka.start())],
    ['is cut off and returns', async () => (await kafka.disconnect(), await kafka.connect())],
  ])('lose nothing and keep the order of each key when Kafka %s under load', async (_, fault) => {
    const received = new Received();
    await Promise.all([start(received.handler), start(received.handler)]);
    const publisher = await start();
    let ended = false;
    const published = publishing(publisher, () => ended);
    await eventually(() => expect(received.messages.length).toBeGreaterThan(100), { timeoutMs: 60_000 });
    await fault();
    const before = received.messages.length;
    await eventually(() => expect(received.messages.length).toBeGreaterThan(before + 100), { timeoutMs: 60_000 });
    ended = true;
    const last = await published;
    await eventually(() => received.assertAllInOrder(tenants, last), { timeoutMs: 60_000 });
  });

  it('fail in bounded time while Kafka is down, and work when it is back', async () => {
    const messages = await start();
    const answering = store.open();
    answering.handle('auth.tenants.get', ({ tenantId }) => Promise.reject(new RequestError('not_found', tenantId)));
    await answering.start();
    await kafka.stop();
    let publishing = true;
    const publish = messages
      .publish(TOPIC, [balanceUpdate('a', 1)])
      .catch((error: unknown) => error)
      .finally(() => (publishing = false));
    const request = messages
      .request('auth.tenants.get', { tenantId: 'x' }, { deadlineMs: 500 })
      .catch((error) => error);
    const requestMs = elapsedMs(() => request);
    const publishMs = elapsedMs(() => publish);
    expect(await request).toBeInstanceOf(UnavailableError);
    // At its own deadline.
    expect(publishing).toBe(true);
    expect(await requestMs).toBeLessThan(2_000);
    expect(await publish).toBeInstanceOf(UnavailableError);
    expect(await publishMs).toBeLessThan(12_000);
    await kafka.start();
    await eventually(() => messages.publish(TOPIC, [balanceUpdate('a', 1)]), { timeoutMs: 60_000 });
    // Before the session of the former reader of the replies is over.
    const asked = () => messages.request('auth.tenants.get', { tenantId: 'x' }, { deadlineMs: 1_000 });
    await eventually(() => expect(asked()).rejects.toMatchObject({ code: 'not_found' }), { timeoutMs: 25_000 });
  });

  it('lose nothing and keep the order of each key while consumers come and go under load', async () => {
    const received = new Received();
    const publisher = await start();
    await start(received.handler);
    let ended = false;
    const published = publishing(publisher, () => ended);
    const growth = async () => {
      const before = received.messages.length;
      await eventually(() => expect(received.messages.length).toBeGreaterThan(before + 200), { timeoutMs: 60_000 });
    };
    for (let round = 0; round < 3; round++) {
      const guests = await Promise.all([start(received.handler), start(received.handler)]);
      await growth();
      await guests[0].stopConsuming();
      await guests[1].close();
      await growth();
    }
    ended = true;
    const last = await published;
    await eventually(() => received.assertAllInOrder(tenants, last), { timeoutMs: 60_000 });
    const repeats = received.messages.length - last * tenants.length;
    expect(repeats).toBe(0);
  });

  it('are not repeated elsewhere when a handler outlasts the session: heartbeats keep its membership', async () => {
    const received = new Received();
    const entered = new WakeableDelay();
    let finish: () => void = () => {};
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const session = { sessionTimeoutMs: 8_000 };
    await start(async (batch) => {
      entered.wake();
      await finished;
      await received.handler(batch);
    }, session);
    const publisher = await start();
    await publisher.publish(TOPIC, [balanceUpdate('a', 1)]);
    await entered.wait(60_000);
    await start(received.handler, session);
    await new Promise((resolve) => setTimeout(resolve, 2 * session.sessionTimeoutMs));
    expect(received.messages).toEqual([]);
    finish();
    await publisher.publish(TOPIC, [balanceUpdate('a', 2)]);
    await eventually(() => received.assertAllInOrder(['a'], 2));
    expect(received.messages).toHaveLength(2);
  });

  it('wait behind a failed batch of their own partition, and not behind that of another', async () => {
    const received = new Received();
    let failing = true;
    const failed: BalanceUpdate[] = [];
    const messages = await start(async (batch) => {
      if (failing && batch.some(({ tenantId }) => tenantId === 't0')) {
        failed.push(batch[0]!);
        throw new Error('not this one');
      }
      await received.handler(batch);
    });
    for (let version = 1; version <= 10; version++)
      await messages.publish(
        TOPIC,
        tenants.map((tenant) => balanceUpdate(tenant, version)),
      );
    const done = () =>
      new Set(received.messages.filter(({ version }) => version === '10').map(({ tenantId }) => tenantId));
    await eventually(() => expect(done().size).toBeGreaterThan(0));
    expect(done().has('t0')).toBe(false);
    await eventually(() => expect(failed.length).toBeGreaterThan(2));
    failing = false;
    await eventually(() => received.assertAllInOrder(tenants, 10), { timeoutMs: 60_000 });
  });

  it('are handled in several partitions at the same time when configured', async () => {
    let running = 0;
    let most = 0;
    const messages = await start(
      async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 50));
        running--;
      },
      { concurrentPartitions: 3 },
    );
    await eventually(async () => {
      await messages.publish(
        TOPIC,
        tenants.map((tenant) => balanceUpdate(tenant, 1)),
      );
      expect(most).toBeGreaterThan(1);
    });
  });

  it('leave no socket and no timer behind', async () => {
    const resources = () =>
      process.getActiveResourcesInfo().filter((name) => /^(TCPSocketWrap|Timeout)$/.test(name)).length;
    const before = resources();
    const messages = store.open();
    messages.consume(TOPIC, SUITE_GROUP, async () => {});
    messages.handle('auth.tenants.get', () => new Promise(() => {}));
    await messages.start();
    await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
    const late = messages
      .request('auth.tenants.get', { tenantId: 'x' }, { deadlineMs: 300 })
      .catch((error: unknown) => error);
    expect(await late).toBeInstanceOf(UnavailableError);
    expect(resources()).toBeGreaterThan(before);
    await messages.close();
    await eventually(() => expect(resources()).toBeLessThanOrEqual(before));
  });
});

describe('a start that cannot succeed', () => {
  it('says within 10 s that nothing listens at the address', async () => {
    const { error, tookMs } = await failedStart({ brokers: ['127.0.0.1:1'], clientId: 'test' });
    expect(error.message).toMatch(/cannot be used at 127\.0\.0\.1:1 .*check KAFKA_BROKERS/);
    expect(tookMs).toBeLessThan(10_000);
  });

  it('says within 10 s that the listener does not answer', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const { error, tookMs } = await failedStart({ brokers: [`127.0.0.1:${port}`], clientId: 'test' });
    server.close();
    expect(error.message).toMatch(/cannot be used/);
    expect(tookMs).toBeLessThan(10_000);
  });

  it('says within 10 s that the brokers speak no TLS, or have no users, and never shows the password', async () => {
    const sasl = { mechanism: 'plain' as const, username: 'tollgate', password: 'hunter2-hunter2' };
    const failures = await Promise.all([
      failedStart({ brokers: kafka.brokers, clientId: 'test', tls: true }),
      failedStart({ brokers: kafka.brokers, clientId: 'test', sasl }),
    ]);
    for (const { error, tookMs } of failures) {
      expect(error.message).toMatch(/KAFKA_TLS and KAFKA_SASL_MECHANISM/);
      expect(error.message).not.toMatch(/hunter2/);
      expect(tookMs).toBeLessThan(10_000);
    }
  });

  it.each([
    ['silent', () => kafka.pause(), () => kafka.unpause()],
    ['gone', () => kafka.stop(), () => kafka.start()],
  ])(
    'that are %s do not stop the start of a process that may start without them, which connects later',
    async (_, take, bring) => {
      const store = await KafkaStore.create(kafka.brokers);
      const other = store.open();
      const recorded = { recorded: 1 };
      other.handle('auth.tokens.used', async () => recorded);
      await other.start();
      const received = new Received();
      const messages = store.open({ startsWithoutBrokers: true });
      messages.consume(TOPIC, SUITE_GROUP, received.handler);
      const ask = () => messages.request('auth.tokens.used', { uses: [] }, { deadlineMs: 15_000 });
      await take();
      try {
        await messages.start();
        await expect(messages.check()).rejects.toThrow();
        await expect(messages.publish(TOPIC, [balanceUpdate('t', 1)])).rejects.toThrow(UnavailableError);
        await expect(ask()).rejects.toThrow(UnavailableError);
      } finally {
        await bring();
      }
      await eventually(() => messages.check(), { timeoutMs: 60_000 });
      await eventually(() => messages.publish(TOPIC, [balanceUpdate('t', 2)]), { timeoutMs: 60_000 });
      await eventually(
        () => expect(received.messages.map(({ version }) => version)).toContain(balanceUpdate('t', 2).version),
        {
          timeoutMs: 60_000,
        },
      );
      expect(await eventually(ask, { timeoutMs: 60_000 })).toEqual(recorded);
      await Promise.all([messages.close(), other.close()]);
      await store.close();
    },
  );

  async function failedStart(connection: KafkaMessagesOptions['connection']) {
    let error!: Error;
    const tookMs = await leastMs(10_000, async () => {
      error = new Error('it started');
      const messages = new KafkaMessages({ connection, identity: TEST_IDENTITY });
      const before = Date.now();
      await messages.start().catch((thrown: Error) => (error = thrown));
      const took = Date.now() - before;
      await messages.close();
      return took;
    });
    return { error, tookMs };
  }
});
