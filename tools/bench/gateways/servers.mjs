// The three servers of the distributed form, with the settings of docker-compose.yml that cost or spare time: Redis
// syncs each settlement to its disk before it answers.
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { ROOT } from '../../setup/prepare.mjs';
import { answered, freePort } from '../machine/processes.mjs';
import { startContainer } from './containers.mjs';

const require = createRequire(import.meta.url);
const READY_TIMEOUT_MS = 90_000;
const ASK_TIMEOUT_MS = 2_000;

/** @returns {Promise<{ pid: number, remove: () => Promise<void>, urlOf: (user: string) => string }>} */
export async function startRedis(home) {
  const { aclFile, REDIS_USERS } = require(join(ROOT, 'libs/redis/dist/rights.js'));
  const passwords = Object.fromEntries([...REDIS_USERS, 'admin'].map((user) => [user, newPassword()]));
  const users = join(home, 'redis-users');
  writeFileSync(users, `${aclFile(passwords).trim()}\n`);
  chmodSync(users, 0o444);
  const port = await freePort();
  const container = await startContainer('REDIS', {
    command: [
      ...['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--aclfile', '/run/redis-users'],
      ...['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--maxmemory-policy', 'noeviction'],
    ],
    files: { '/run/redis-users': users },
  });
  // As a user who may only PING, or none: an answer is enough.
  await ready('Redis', container, () => say(port, 'PING\r\n'));
  return { ...container, urlOf: (user) => `redis://${user}:${passwords[user]}@127.0.0.1:${port}` };
}

/** @returns {Promise<{ bytes: number, rows: number }>} the memory of the data of all keys, and their number */
export async function redisSize(url) {
  const client = new Redis(url);
  try {
    const [, bytes] = /^used_memory_dataset:(\d+)/m.exec(await client.info('memory'));
    return { bytes: Number(bytes), rows: await client.dbsize() };
  } finally {
    client.disconnect();
  }
}

/** @returns {Promise<{ pid: number, remove: () => Promise<void>, brokers: string }>} */
export async function startKafka() {
  const [port, controller] = [await freePort(), await freePort()];
  const container = await startContainer('KAFKA', {
    env: {
      CLUSTER_ID: '5L6g3nShT-eMCtK--X86sw',
      KAFKA_NODE_ID: '1',
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_CONTROLLER_QUORUM_VOTERS: `1@127.0.0.1:${controller}`,
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_LISTENERS: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
      KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://127.0.0.1:${port}`,
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      KAFKA_LOG_DIRS: '/var/lib/kafka/data',
      KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS: '8',
      KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
      KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS: '4',
      KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR: '1',
      KAFKA_HEAP_OPTS: '-Xms256m -Xmx512m',
    },
  });
  // ApiVersions, version 0, without a client id: what every broker answers.
  const apiVersions = Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]);
  await ready('Kafka', container, () => say(port, apiVersions));
  return { ...container, brokers: `127.0.0.1:${port}` };
}

/**
 * @returns {Promise<{ pid: number, remove: () => Promise<void>, url: string, database: import('pg').ClientConfig }>}
 */
export async function startPostgres() {
  const [port, password] = [await freePort(), newPassword()];
  const container = await startContainer('POSTGRES', {
    command: ['postgres', '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=420'],
    env: { POSTGRES_PASSWORD: password, POSTGRES_DB: 'tollgate', MALLOC_TRIM_THRESHOLD_: '1048576' },
  });
  const database = { host: '127.0.0.1', port, user: 'postgres', password, database: 'tollgate' };
  await ready('PostgreSQL', container, async () => {
    const client = new pg.Client({ ...database, connectionTimeoutMillis: ASK_TIMEOUT_MS });
    client.on('error', () => {});
    await client.connect();
    await client.query('SELECT 1').finally(() => client.end());
  });
  return { ...container, url: `postgres://postgres:${password}@127.0.0.1:${port}/tollgate`, database };
}

const newPassword = () => randomBytes(24).toString('hex');

async function ready(name, container, question) {
  await answered(question, { timeoutMs: READY_TIMEOUT_MS }).catch(async (error) => {
    throw new Error(`${name} does not answer: ${error.message}\n${await container.logs()}`, { cause: error });
  });
}

/** Resolves when anything at all is answered. */
function say(port, request) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(request));
    const end = (error) => {
      socket.destroy();
      if (error) reject(error);
      else resolve();
    };
    socket.setTimeout(ASK_TIMEOUT_MS, () => end(new Error('silence')));
    socket.once('error', end);
    socket.once('data', () => end());
    socket.once('close', () => end(new Error('the connection was closed')));
  });
}
