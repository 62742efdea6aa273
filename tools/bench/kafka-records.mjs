// Measures what a usage event costs on Kafka, in CPU time: with a record for each message, and with records that
// messages of one call and key share. Both ways are measured in turn, in this process: to publish the events, and then
// to read and verify them with a handler that does nothing. The broker is a container, and its CPU is shown beside.
// Build first (npm run build), then:
//   node tools/bench/kafka-records.mjs [events, 10000] [rounds, 5]
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { loadavg } from 'node:os';
import { prepareContainers } from './gateways/containers.mjs';
import { startKafka } from './gateways/servers.mjs';
import { takeDown } from './machine/take-down.mjs';
import { cpuSeconds } from './machine/usage.mjs';

const require = createRequire(import.meta.url);
const { newId, SERVICES, servicePairs, TOPICS } = require('@tollgate/contracts');
const { applyTopics, KafkaMessages, MessageKeys } = require('@tollgate/messaging');

const EVENTS = Number(process.argv[2] ?? 10_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const TOPIC = 'usage-events';
const GROUP = 'metering';
const WAYS = { alone: false, shared: true };
/** Tenants, and events of one publish call: 100 are what a busy gateway gathers in 50 ms, 500 are its maximum. */
const CASES = [
  { tenants: 1, call: 100 },
  { tenants: 1, call: 500 },
  { tenants: 100, call: 100 },
  { tenants: 100, call: 500 },
];
const WAIT_LIMIT_MS = 60_000;

const KEY_ID = newId('key');

function event(tenantId) {
  const at = new Date().toISOString();
  return {
    ...{ id: newId('req'), tenantId, keyId: KEY_ID, model: 'bench', kind: 'chat' },
    ...{ stream: false, startedAt: at, endedAt: at, outcome: 'complete', estimated: false },
    ...{ backend: 'http://127.0.0.1:9000/v1', promptTokens: 112, completionTokens: 100, cachedPromptTokens: 0 },
    ...{ costNanos: '212000', overrunNanos: '0', defaultBudgets: {} },
    price: { version: 'a1b2c3d4', inputFemtos: '200000000000', outputFemtos: '600000000000' },
  };
}

/** A publisher and its consumer, which handles nothing while it is held. */
async function open(brokers, way) {
  const secret = ({ from, to }) => createHash('sha256').update(`${from} ${to}`).digest('hex');
  const keys = new MessageKeys(servicePairs().map((pair) => ({ ...pair, id: 'bench', secret: secret(pair) })));
  const topics = { ...TOPICS, [TOPIC]: { ...TOPICS[TOPIC], sharesRecords: WAYS[way] } };
  const connection = { brokers: [brokers], clientId: `bench-${way}` };
  const topicPrefix = `bench-${way}.`;
  await applyTopics(connection, { topics, topicPrefix });
  const messages = new KafkaMessages({ connection, identity: { services: SERVICES, keys }, topicPrefix, topics });
  const side = { messages, handled: 0, held: Promise.resolve(), notice: () => {} };
  messages.consume(TOPIC, GROUP, async (batch) => {
    side.handled += batch.length;
    side.notice();
    await side.held;
  });
  await messages.start();
  return side;
}

const handled = (side, count) =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${side.handled} of ${count} were handled`)), WAIT_LIMIT_MS);
    side.notice = () => {
      if (side.handled < count) return;
      clearTimeout(late);
      resolve();
    };
    side.notice();
  });

/** Microseconds of CPU an event, of this process and of the broker. */
async function cpuOf(broker, work) {
  const brokerBefore = cpuSeconds([broker]);
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return { own: (user + system) / EVENTS, broker: ((cpuSeconds([broker]) - brokerBefore) * 1e6) / EVENTS };
}

async function measure(side, broker, { tenants, call }) {
  const ids = Array.from({ length: tenants }, () => newId('ten'));
  const events = Array.from({ length: EVENTS }, (_, n) => event(ids[n % tenants]));
  let release;
  side.held = new Promise((resolve) => (release = resolve));
  // The consumer waits in this one until all are published.
  const before = side.handled + 1;
  await side.messages.publish(TOPIC, [event('ten_held')]);
  await handled(side, before);
  const publish = await cpuOf(broker, async () => {
    for (let at = 0; at < EVENTS; at += call) await side.messages.publish(TOPIC, events.slice(at, at + call));
  });
  side.held = Promise.resolve();
  const consume = await cpuOf(broker, async () => {
    release();
    await handled(side, before + EVENTS);
  });
  return { publish: publish.own, consume: consume.own, broker: publish.broker + consume.broker };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

try {
  await prepareContainers();
  const { pid, brokers } = await startKafka();
  const sides = {};
  for (const way of Object.keys(WAYS)) sides[way] = await open(brokers, way);
  console.log(
    `${EVENTS} usage events, medians of ${ROUNDS} rounds, µs of CPU an event; load ${loadavg()[0].toFixed(1)}`,
  );
  const rows = [];
  for (const each of CASES) {
    const found = { alone: [], shared: [] };
    // The first round warms up. The order changes, so that neither always follows the other.
    for (let round = 0; round <= ROUNDS; round++)
      for (const way of round % 2 ? Object.keys(WAYS) : Object.keys(WAYS).reverse()) {
        const figures = await measure(sides[way], pid, each);
        if (round > 0) found[way].push(figures);
      }
    const row = { tenants: each.tenants, 'events a call': each.call };
    for (const what of ['publish', 'consume', 'broker']) {
      const [alone, shared] = Object.keys(WAYS).map((way) => found[way].map((figures) => figures[what]));
      row[what] = `${median(alone).toFixed(1)} → ${median(shared).toFixed(1)}`;
      row[`${what}: ratio`] = median(shared.map((figure, round) => figure / alone[round])).toFixed(2);
    }
    rows.push(row);
  }
  console.table(rows);
  await Promise.all(Object.values(sides).map(({ messages }) => messages.close()));
} finally {
  await takeDown();
}
