import { newId, type Service, type UsageEvent } from '@tollgate/contracts';
import { readSettings } from '@tollgate/runtime';
import { elapsedMs, eventually, LOCALHOST_CERTIFICATE, LOCALHOST_KEY, tenantRow, useKafka } from '@tollgate/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyTopics } from './admin/apply-topics';
import { kafkaConnection, kafkaMessages, KafkaSettings, MessageKeysSettings } from './kafka-settings';
import { createMessageKeys, keysFileOf } from './sign/make-keys';

const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;
const USER = 'tollgate';
const PASSWORD = 'the password of a test';
const JAAS = 'org.apache.kafka.common.security';
const LISTENER = 'KAFKA_LISTENER_NAME_SECURE_';
const START_LIMIT_MS = 10_000;
/** Reached only if a group is not joined, also on a busy machine. */
const JOIN_LIMIT_MS = 30_000;

// Real: a broker with a listener that accepts only logged-in clients over TLS.
const kafka = useKafka({
  secured: 'SASL_SSL',
  files: { '/tls/server.pem': `${LOCALHOST_KEY}${LOCALHOST_CERTIFICATE}` },
  settings: {
    [`${LISTENER}SASL_ENABLED_MECHANISMS`]: 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    [`${LISTENER}PLAIN_SASL_JAAS_CONFIG`]: `${JAAS}.plain.PlainLoginModule required user_${USER}="${PASSWORD}";`,
    [`${LISTENER}SCRAM___SHA___256_SASL_JAAS_CONFIG`]: `${JAAS}.scram.ScramLoginModule required;`,
    [`${LISTENER}SCRAM___SHA___512_SASL_JAAS_CONFIG`]: `${JAAS}.scram.ScramLoginModule required;`,
    [`${LISTENER}SSL_KEYSTORE_TYPE`]: 'PEM',
    [`${LISTENER}SSL_KEYSTORE_LOCATION`]: '/tls/server.pem',
  },
});
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-kafka-'));
  createMessageKeys(folder);
  writeFileSync(join(folder, 'ca.pem'), LOCALHOST_CERTIFICATE);
  await kafka.addScramUser(USER, PASSWORD);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The settings as a service reads them. */
const settings = (more: Record<string, string>, service: Service = 'gateway'): KafkaSettings & MessageKeysSettings =>
  readSettings(
    {
      KAFKA_BROKERS: kafka.securedBrokers.join(),
      KAFKA_TLS: 'true',
      KAFKA_CA_FILE: join(folder, 'ca.pem'),
      KAFKA_USERNAME: USER,
      KAFKA_PASSWORD: PASSWORD,
      TOLLGATE_MESSAGE_KEYS_FILE: keysFileOf(folder, service),
      ...more,
    },
    [KafkaSettings, MessageKeysSettings],
  );

describe.each(MECHANISMS)('a broker that requires a user by %s, over TLS', (mechanism) => {
  const login = (service?: Service) =>
    settings({ KAFKA_SASL_MECHANISM: mechanism, KAFKA_TOPIC_PREFIX: `${mechanism}.` }, service);

  it('allows creating topics, publishing, consuming, requesting and answering', async () => {
    await applyTopics(kafkaConnection(login(), 'test'), { topicPrefix: `${mechanism}.` });
    const messages = kafkaMessages(login('metering'), 'metering');
    const answering = kafkaMessages(login('auth'), 'auth');
    const asking = kafkaMessages(login(), 'gateway');
    const consumed: unknown[] = [];
    messages.consume('usage-events', 'metering', async (batch) => void consumed.push(...batch));
    answering.handle('auth.tenants.get', async ({ tenantId }) => tenantRow(tenantId, 'Acme'));
    try {
      await messages.start();
      await answering.start();
      await asking.start();
      const tenantId = newId('ten');
      const event = { id: newId('req'), tenantId } as UsageEvent;
      await asking.publish('usage-events', [event]);
      await eventually(() => expect(consumed).toEqual([event]), { timeoutMs: JOIN_LIMIT_MS });
      const reply = await eventually(() => asking.request('auth.tenants.get', { tenantId }), {
        timeoutMs: JOIN_LIMIT_MS,
      });
      expect(reply).toMatchObject({ id: tenantId, name: 'Acme' });
      await eventually(() => messages.check());
    } finally {
      await Promise.all([messages.close(), answering.close(), asking.close()]);
    }
  });

  it('ends the start on a wrong password with one line that names the settings, not the password', async () => {
    const wrong = kafkaMessages(
      settings({ KAFKA_SASL_MECHANISM: mechanism, KAFKA_PASSWORD: 'not-to-be-shown' }),
      'gateway',
    );
    const line = new RegExp(
      '^Kafka at 127\\.0\\.0\\.1:\\d+ \\(with TLS, as "tollgate" by [a-z0-9-]+\\) refuses the user: ' +
        '(?!.*not-to-be-shown).*: correct KAFKA_USERNAME, KAFKA_PASSWORD or KAFKA_SASL_MECHANISM$',
    );
    expect(await elapsedMs(() => expect(wrong.start()).rejects.toThrow(line))).toBeLessThan(START_LIMIT_MS);
    await wrong.close();
  });
});

it.each([
  [
    'a client without a user',
    { KAFKA_USERNAME: '', KAFKA_PASSWORD: '' },
    /\(with TLS, without a user\).* check KAFKA_BROKERS/,
  ],
  [
    'a client without TLS',
    { KAFKA_SASL_MECHANISM: 'plain', KAFKA_TLS: 'false', KAFKA_CA_FILE: '' },
    /\(without TLS, as "tollgate" by plain\).* check KAFKA_BROKERS, KAFKA_TLS/,
  ],
  [
    'a client that does not know the authority',
    { KAFKA_SASL_MECHANISM: 'plain', KAFKA_CA_FILE: '' },
    /: the certificate of the brokers is not trusted \(.*self-signed .*\): name its authority in KAFKA_CA_FILE$/,
  ],
])('%s gets an error that names what does not fit', async (_, more, line) => {
  const messages = kafkaMessages(settings(more), 'gateway');
  await expect(messages.start()).rejects.toThrow(line);
  await messages.close();
});
