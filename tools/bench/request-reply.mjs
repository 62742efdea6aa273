// Measures what Nest adds to a request and its reply. The real auth service, on an embedded PostgreSQL, answers
// `auth.tenants.get` in two ways: by a handler registered in the bare seam, and by its controller through
// `ServiceClient`. Requests alternate, so that other load of the machine affects both. A handler that does nothing
// shows the difference alone. Build first (npm run build), then:
//   node tools/bench/request-reply.mjs [requests of each, 5000] [Kafka brokers host:port, otherwise in process]
import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const require = createRequire(import.meta.url);
const { SERVICES, servicePairs } = require('@tollgate/contracts');
const { CredentialStore, MIGRATIONS: CREDENTIALS, PostgresCredentialStore } = require('@tollgate/credentials');
const { applyTopics, KafkaMessages, MessageKeys, PostgresMessages } = require('@tollgate/messaging');
const { MessagePattern, MessagesModule, MessagesServer, ServiceClient } = require('@tollgate/messaging/nest');
const { migrateSchemas, startEmbeddedPostgres } = require('@tollgate/postgres');
const { ConfigSource, FileConfigSource, globalModule, provide } = require('@tollgate/runtime');
const { AuthModule, MIGRATIONS: AUTH } = require('../../apps/auth/dist/index.js');
const { Tenants } = require('../../apps/auth/dist/tenants/tenants.js');

const REQUESTS = Number(process.argv[2] ?? 5_000);
const BROKERS = process.argv[3]?.split(',');
const WARM_UP = Math.min(2_000, REQUESTS);
const PARTS = 5;
const DEADLINE_MS = 15_000;

const directory = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
const server = await startEmbeddedPostgres({ dataDirectory: directory });
const cleanUp = [() => rmSync(directory, { recursive: true, force: true }), () => server.stop()];

function open(name) {
  if (!BROKERS) return new PostgresMessages({ url: server.url, applicationName: name, schema: `bench_${name}` });
  const secret = ({ from, to }) => createHash('sha256').update(`${from} ${to}`).digest('hex');
  const keys = new MessageKeys(servicePairs().map((pair) => ({ ...pair, id: 'bench', secret: secret(pair) })));
  return new KafkaMessages({
    connection: connection(name),
    identity: { services: SERVICES, keys },
    topicPrefix: `bench-${name}.`,
  });
}

function connection(name) {
  return { brokers: BROKERS, clientId: `bench-${name}` };
}

async function nestApp(name, module) {
  const messages = open(name);
  const app = await NestFactory.createMicroservice(
    { module: class Root {}, imports: [MessagesModule.of(messages), ...(module.imports ?? [])], ...module.own },
    { strategy: new MessagesServer(messages), logger: false, abortOnError: false },
  );
  await app.listen();
  cleanUp.push(
    () => messages.close(),
    () => app.close(),
  );
  return app;
}

async function bareSeam(name, handler) {
  const messages = open(name);
  messages.handle('auth.tenants.get', handler);
  await messages.start();
  cleanUp.push(() => messages.close());
  return messages;
}

async function measure(title, tenantId, ways) {
  const names = Object.keys(ways);
  const ask = (name) => ways[name].request('auth.tenants.get', { tenantId }, { deadlineMs: DEADLINE_MS });
  for (let i = 0; i < WARM_UP; i++) for (const name of names) await ask(name);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (let i = 0; i < REQUESTS; i++) {
    // The order changes, so that neither always follows the other.
    for (const name of i % 2 ? names : [...names].reverse()) {
      const before = performance.now();
      await ask(name);
      times[name].push((performance.now() - before) * 1_000);
    }
  }
  const size = Math.ceil(REQUESTS / PARTS);
  const part = (i, name) => quantile(times[name].slice(i * size, (i + 1) * size), 0.5);
  const ratios = Array.from({ length: PARTS }, (_, i) => part(i, 'nest') / part(i, 'bare'));
  const [bare, nest] = ['bare', 'nest'].map((name) => [0.5, 0.99].map((q) => quantile(times[name], q)));
  console.log(
    `${title}\n  bare: p50 ${us(bare[0])}, p99 ${us(bare[1])}; through Nest: p50 ${us(nest[0])}, p99 ${us(nest[1])}\n` +
      `  p50: ${us(nest[0] - bare[0])} more, ratio ${ratio(nest[0] / bare[0])} (${ratios.map(ratio).join(', ')})`,
  );
}

const us = (value) => `${value.toFixed(1)} µs`;
const ratio = (value) => value.toFixed(3);

function quantile(values, q) {
  return [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))];
}

try {
  await migrateSchemas(server.url, [AUTH, CREDENTIALS]);
  const names = ['bare', 'nest', 'bare0', 'nest0'];
  if (BROKERS) for (const name of names) await applyTopics(connection(name), { topicPrefix: `bench-${name}.` });
  const credentials = new PostgresCredentialStore({ url: server.url, applicationName: 'bench' });
  await credentials.start();
  const config = new FileConfigSource(join(import.meta.dirname, '../../tollgate.yaml'), null);
  cleanUp.push(
    () => config.close(),
    () => credentials.close(),
  );
  console.log(`${REQUESTS} requests each, ${BROKERS ? 'over Kafka' : 'in process'}; load ${loadavg()[0].toFixed(1)}`);

  class Nothing {
    get({ tenantId: id }) {
      return Promise.resolve({ id });
    }
  }
  MessagePattern('auth.tenants.get')(
    Nothing.prototype,
    'get',
    Object.getOwnPropertyDescriptor(Nothing.prototype, 'get'),
  );
  Controller()(Nothing);
  const nothing = new Nothing();
  await measure('a handler that does nothing', 'ten_1', {
    bare: await bareSeam('bare0', (request) => nothing.get(request)),
    nest: (await nestApp('nest0', { own: { controllers: [Nothing] } })).get(ServiceClient, { strict: false }),
  });

  const seams = globalModule([provide(CredentialStore, credentials), provide(ConfigSource, config)]);
  const auth = await nestApp('nest', { imports: [seams, AuthModule.register({ databaseUrl: server.url })] });
  const tenants = auth.get(Tenants, { strict: false });
  const { id } = await tenants.create({ name: 'Bench' });
  await measure('auth.tenants.get', id, {
    bare: await bareSeam('bare', (request) => tenants.get(request)),
    nest: auth.get(ServiceClient, { strict: false }),
  });
} finally {
  for (const step of cleanUp.reverse()) await step();
}
