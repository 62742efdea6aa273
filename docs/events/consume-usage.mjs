// An example of a consumer: prints each usage event of Kafka as a line of JSON.
//   npm install kafkajs
//   KAFKA_BROKERS=localhost:9092 node consume-usage.mjs
// In a signed-in cluster also KAFKA_TLS=true, KAFKA_SASL_MECHANISM, KAFKA_USERNAME, KAFKA_PASSWORD.
import { Kafka, logLevel } from 'kafkajs';
import { pathToFileURL } from 'node:url';

const COUNT_HEADER = 'tollgate-messages';
const VERSION = 1;

/** The messages of a record: several share one, a line each, where the header says so. */
export function messagesOf({ value, headers = {} }) {
  const text = value.toString('utf8');
  const lines = headers[COUNT_HEADER] === undefined ? [text] : text.split('\n');
  return lines.map((line) => {
    const message = JSON.parse(line);
    if (message.v !== VERSION) throw new Error(`version ${message.v} of the topic, but this program reads ${VERSION}`);
    return message;
  });
}

/** Writes an event into your own store. Here: to stdout. A repeat has the same `id`, which makes a good primary key. */
function store(event) {
  const { id, tenantId, keyId, model, endedAt, promptTokens, completionTokens, costNanos, outcome } = event;
  const row = { id, tenantId, keyId, model, endedAt, promptTokens, completionTokens, costNanos, outcome };
  process.stdout.write(`${JSON.stringify(row)}\n`);
}

async function main(env) {
  const kafka = new Kafka({
    clientId: 'usage-example',
    brokers: (env.KAFKA_BROKERS ?? 'localhost:9092').split(','),
    ssl: env.KAFKA_TLS === 'true',
    ...(env.KAFKA_USERNAME && {
      sasl: { mechanism: env.KAFKA_SASL_MECHANISM, username: env.KAFKA_USERNAME, password: env.KAFKA_PASSWORD },
    }),
    logLevel: logLevel.WARN,
  });
  const consumer = kafka.consumer({ groupId: env.KAFKA_GROUP ?? 'usage-example' });
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => consumer.disconnect());
  await consumer.connect();
  await consumer.subscribe({ topic: `${env.KAFKA_TOPIC_PREFIX ?? ''}usage-events`, fromBeginning: true });
  // The offset of a record is committed after its events are stored, so a crash repeats some and loses none.
  await consumer.run({
    eachMessage: async ({ message }) => {
      for (const { data } of messagesOf(message)) store(data);
    },
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(process.env);
