import { newId, SERVICES, type Charge } from '@tollgate/contracts';
import { KafkaMessages, Signatures } from '@tollgate/messaging';
import { eventually, useKafka } from '@tollgate/testing';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { usageEvent } from '../../../apps/metering/src/sample-events.fixture';
import { toRecord, type DeadLetter } from '../../../libs/messaging/src/kafka/consume/dead-letters';
import { Publisher } from '../../../libs/messaging/src/kafka/publish/publisher';
import { TEST_IDENTITY } from '../../../libs/messaging/src/kafka/sign/test-identity.fixture';
import { runTollgate } from '../tollgate-process';

// Real: Kafka and the process. 6 s is the shortest session that a broker allows by default.
const kafka = useKafka();
const PREFIX = 'cli.';

const tollgate = (args: string[], env: Record<string, string> = {}) =>
  runTollgate(args, { KAFKA_BROKERS: kafka.brokers.join(','), KAFKA_TOPIC_PREFIX: PREFIX, ...env });
async function json(...args: string[]) {
  const { code, stdout, stderr } = await tollgate([...args, '--json']);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

describe('tollgate topics', () => {
  it('check names the missing topics and the remedy, and apply makes them and reports it', async () => {
    const before = await tollgate(['topics', 'check']);
    expect([before.code, before.stdout]).toEqual([1, '']);
    expect(before.stderr).toMatch(/^tollgate: .*missing: .*"cli\.charges".*tollgate topics apply.*\n$/);

    const first = await tollgate(['topics', 'apply']);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toContain('cli.charges: created with 12 partitions\n');
    const again = await json('topics', 'apply');
    expect(again.ok).toBe(true);
    expect(again.topics).toContainEqual({ topic: 'cli.usage-events', result: 'correct' });
    // This broker has no authorizer.
    expect(again.rights).toBeNull();
    expect(await json('topics', 'check')).toEqual({ ok: true, rights: 'not checked' });
  });

  it('apply --dry-run changes nothing, and lists every right, so that it can be set by hand', async () => {
    const prefix = { KAFKA_TOPIC_PREFIX: 'dry.' };
    const { code, stdout, stderr } = await tollgate(
      ['topics', 'apply', '--dry-run', '--principal', 'metering=User:sa-7'],
      prefix,
    );
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('right User:sa-7 may WRITE topic "dry.charges": is needed\n');
    for (const operation of ['READ', 'DELETE'])
      expect(stdout).toContain(`right User:gateway may ${operation} group "dry.replies.gateway.*": is needed\n`);
    expect(stdout).toContain('dry.charges: to be created with 12 partitions\n');
    expect((await tollgate(['topics', 'check'], prefix)).stderr).toContain('"dry.charges"');
  });

  it('apply --users makes the services’ users with the passwords in the files', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-users-'));
    try {
      const services = ['gateway', 'auth', 'metering', 'billing', 'console'];
      const missing = await tollgate(['topics', 'apply', '--users', directory]);
      expect([missing.code, missing.stderr]).toEqual([
        2,
        expect.stringMatching(/kafka-gateway-password cannot be read/),
      ]);
      for (const service of services)
        writeFileSync(join(directory, `kafka-${service}-password`), `the-password-of-${service}\n`);
      const { users } = await json('topics', 'apply', '--users', directory);
      expect(users).toEqual(services);
      const text = await tollgate(['topics', 'apply', '--users', directory]);
      expect([text.stderr, text.stdout]).toEqual(['', expect.stringContaining('user billing: has its password\n')]);
      expect(text.stdout).not.toContain('the-password-of');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it.each([
    [
      { KAFKA_BROKERS: '127.0.0.1:1' },
      1,
      /^tollgate: Kafka cannot be used at 127\.0\.0\.1:1 .*check KAFKA_BROKERS.*\n$/,
    ],
    [{ KAFKA_BROKERS: '' }, 2, /^tollgate: KAFKA_BROKERS is not set.*\n$/],
    [{ KAFKA_BROKERS: 'nonsense' }, 2, /^tollgate: KAFKA_BROKERS must be host:port.*\n$/],
    [{ KAFKA_SASL_MECHANISM: 'plain' }, 2, /^tollgate: .*KAFKA_USERNAME and KAFKA_PASSWORD.*\n$/],
  ])('with %j ends with exit code %i and one line', async (env, exitCode, line) => {
    const { code, stdout, stderr } = await tollgate(['topics', 'check'], env);
    expect([code, stdout]).toEqual([exitCode, '']);
    expect(stderr).toMatch(line);
  });

  it('a failure with --json is one JSON document', async () => {
    const { code, stdout } = await tollgate(['topics', 'check', '--json'], { KAFKA_TOPIC_PREFIX: 'none.' });
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      { error: { code: 'topics_wrong', message: expect.stringContaining('"none.charges"') } },
    ]);
  });
});

it('the example of a consumer prints each usage event, also those that share a record', async () => {
  const prefix = 'example.';
  expect((await tollgate(['topics', 'apply'], { KAFKA_TOPIC_PREFIX: prefix })).code).toBe(0);
  const tenantId = newId('ten');
  const events = Array.from({ length: 7 }, (_, index) => usageEvent({ tenantId, completionTokens: index }));
  const messages = new KafkaMessages({
    ...{ connection: { brokers: kafka.brokers, clientId: 'test' }, identity: TEST_IDENTITY, topicPrefix: prefix },
  });
  await messages.start();
  await messages.publish('usage-events', events.slice(0, 6));
  await messages.publish('usage-events', events.slice(6));
  await messages.close();
  const program = join(__dirname, '../../../docs/events/consume-usage.mjs');
  const example = spawn(process.execPath, [program], {
    env: { ...process.env, KAFKA_BROKERS: kafka.brokers.join(','), KAFKA_TOPIC_PREFIX: prefix },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed: { id: string }[] = [];
  for await (const line of createInterface({ input: example.stdout })) {
    printed.push(JSON.parse(line));
    if (printed.length === events.length) example.kill('SIGTERM');
  }
  expect(printed.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
  expect(printed[3]).toMatchObject({ tenantId, completionTokens: 3, costNanos: events[3]!.costNanos });
});

describe('tollgate message-keys', () => {
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-keys-'))));
  afterAll(() => rmSync(folder, { recursive: true }));
  const run = (...args: string[]) => runTollgate(['message-keys', ...args], {});

  it('creates a file for each service, rotates the keys in three steps, and shows none', async () => {
    const directory = join(folder, 'secrets');
    const made = await run('create', directory, '--json');
    expect([made.code, made.stderr]).toEqual([0, '']);
    const { files } = JSON.parse(made.stdout) as { files: string[] };
    expect(files).toEqual(SERVICES.map((service) => join(directory, `${service}-message-keys`)));
    expect((await run('create', directory)).stdout).toBe('All keys exist already.\n');
    for (const step of ['add', 'promote', 'remove']) {
      const { code, stdout } = await run('rotate', directory, step);
      expect([code, stdout]).toEqual([0, expect.stringContaining('Distribute the files to all services')]);
      expect(stdout).not.toMatch(/[0-9a-f]{64}/);
    }
  });

  it.each([
    [
      ['rotate', 'nowhere', 'add'],
      1,
      /^tollgate: there are no message keys in nowhere: make them with "tollgate message-keys create"\n$/,
    ],
    [['rotate', 'nowhere', 'back'], 2, /add, promote, remove/],
    [['create', '/dev/null/keys'], 1, /^tollgate: The keys cannot be read or written: ENOTDIR.*\n$/],
    [['create', '/proc/none'], 1, /^tollgate: The keys cannot be read or written: ENOENT.*\n$/],
  ])('%j is refused', async (args, exitCode, line) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([exitCode, '']);
    expect(stderr).toMatch(line);
  });
});

describe('tollgate dead', () => {
  const connection = () => ({ brokers: kafka.brokers, clientId: 'test' });
  const charge: Charge = {
    id: newId('req'),
    tenantId: newId('ten'),
    costNanos: '5',
    endedAt: new Date().toISOString(),
  } as Charge;
  const envelope = JSON.stringify({ id: 'msg_1', v: 1, at: charge.endedAt, data: charge });
  const letter = (offset: string, value: Buffer | null): DeadLetter => ({
    topic: 'charges',
    group: 'billing',
    partition: 3,
    offset,
    reason: 'version 999 is not known',
    at: new Date().toISOString(),
    key: Buffer.from(charge.tenantId),
    value,
    headers: new Signatures(TEST_IDENTITY).sign(`${PREFIX}charges`, { key: charge.tenantId, value }, 'metering', [
      'billing',
    ]).headers!,
  });

  beforeAll(async () => {
    expect((await tollgate(['topics', 'apply'])).code).toBe(0);
    const publisher = new Publisher(connection());
    const letters = [letter('7', Buffer.from(envelope)), letter('8', Buffer.from([0xff, 0xfe])), letter('9', null)];
    await publisher.send({ topic: `${PREFIX}charges.dead`, messages: letters.map(toRecord) });
    await publisher.close();
  });

  it('lists the quarantined messages with origin, reason and content', async () => {
    expect(await json('dead', 'list')).toMatchObject([
      { topic: 'charges', origin: 'billing/3/7', key: charge.tenantId, value: envelope },
      { origin: 'billing/3/8', value: null, valueBase64: '//4=' },
      { origin: 'billing/3/9', value: null, valueBase64: null },
    ]);
    expect(await json('dead', 'list', 'usage-events')).toEqual([]);
    const { stdout } = await tollgate(['dead', 'list', 'charges']);
    expect(stdout).toMatch(
      /^TOPIC +ORIGIN +QUARANTINED +KEY +REASON\ncharges +billing\/3\/7 .*version 999 is not known\n/,
    );
  });

  it.each([
    [['replay', 'charges'], 2, /^tollgate: Name the messages to replay by their ORIGIN, or give --all\.\n$/],
    [['replay', 'charges', 'billing/3/7', '--all'], 2, /^tollgate: Name the messages/],
    [
      ['replay', 'nothing', '--all'],
      2,
      /^tollgate: There is no topic "nothing"; there are usage-events, charges, .+\n$/,
    ],
    [
      ['replay', 'charges', 'billing/3/7', 'billing/0/1'],
      1,
      /^tollgate: No such message of charges is quarantined: billing\/0\/1\. Nothing was replayed/,
    ],
    [['list', 'nothing'], 2, /^tollgate: There is no topic "nothing"/],
  ])('dead %j is refused', async (args, exitCode, line) => {
    const { code, stdout, stderr } = await tollgate(['dead', ...args]);
    expect([code, stdout]).toEqual([exitCode, '']);
    expect(stderr).toMatch(line);
  });

  it('replays one message to its topic, where it is handled, and keeps the others', async () => {
    expect(await json('dead', 'list')).toHaveLength(3);
    const handled: Charge[] = [];
    const messages = new KafkaMessages({
      ...{ connection: connection(), identity: TEST_IDENTITY, topicPrefix: PREFIX, sessionTimeoutMs: 6_000 },
    });
    messages.consume('charges', 'billing', async (batch) => void handled.push(...batch));
    await messages.start();
    try {
      expect(await json('dead', 'replay', 'charges', 'billing/3/7')).toEqual({ replayed: ['billing/3/7'] });
      await eventually(() => expect(handled).toEqual([charge]), { timeoutMs: 20_000 });
      expect((await json('dead', 'list')).map(({ origin }: { origin: string }) => origin)).toEqual([
        'billing/3/8',
        'billing/3/9',
      ]);
    } finally {
      await messages.stopConsuming();
      await messages.close();
    }
    expect((await json('dead', 'replay', 'charges', '--all')).replayed).toHaveLength(2);
    // The quarantine is empty until the group reads them from the topic and quarantines them again.
    expect(await json('dead', 'list')).toEqual([]);
  });

  it('finds and replays more messages than it lists at once', async () => {
    const count = 10_050;
    const from = Date.parse('2026-01-01T00:00:00Z');
    const letters = Array.from({ length: count }, (_, index) => ({
      ...letter(String(100 + index), Buffer.from('poison')),
      at: new Date(from + index).toISOString(),
    }));
    const publisher = new Publisher(connection());
    await publisher.send({ topic: `${PREFIX}charges.dead`, messages: letters.map(toRecord) });
    await publisher.close();
    const listed = await tollgate(['dead', 'list', 'charges']);
    expect([listed.code, listed.stderr]).toEqual([0, 'These are the oldest 10000; 50 more are quarantined.\n']);
    const newest = `billing/3/${100 + count - 1}`;
    expect(await json('dead', 'replay', 'charges', newest)).toEqual({ replayed: [newest] });
    expect((await json('dead', 'replay', 'charges', '--all')).replayed).toHaveLength(count - 1);
    expect(await json('dead', 'list')).toEqual([]);
  });
});
