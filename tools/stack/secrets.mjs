// The secrets of the composed services. Each is a file in <data directory>/secrets. docker-compose.yml mounts it into
// the containers that need it. No secret is in the environment of a container, so neither `docker inspect` nor
// `docker compose config` shows one.
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';

const load = createRequire(import.meta.url);

/** Every user of a container must be able to read the files. The directory keeps other users of the machine out. */
export const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o444;
const WRITABLE_MODE = 0o600;
const PASSWORD_BYTES = 24;
const ID_CHARS = 12;
/** Logins of PostgreSQL (deploy/postgres/roles.sql): each service, and the owner of its schema for its migrations. */
const DATABASE_LOGINS = ['auth', 'metering', 'billing', 'console'].flatMap((name) => [name, `${name}_owner`]);
/** Users of Kafka, which the job `topics` makes. */
const KAFKA_USERS = ['gateway', 'auth', 'metering', 'billing', 'console'];

export const secretsDirectory = (dataDirectory) => join(dataDirectory, 'secrets');

/** Whether the passwords of an earlier start are here, or among the variables of a stack.env of an older version. */
export const hasPasswords = (dataDirectory, older) =>
  existsSync(join(secretsDirectory(dataDirectory), 'postgres-password')) || Boolean(older.TOLLGATE_POSTGRES_PASSWORD);

/**
 * @typedef {{ operatorSecret: string, metricsToken: string, configSecrets: string, tls: boolean }} Always
 * @typedef {{ consoleSecret?: string, oidcClientSecret?: string, smtpUrl?: string }} OfConsole
 * @typedef {Always & OfConsole & { formerOperatorSecret?: string }} Given
 */

/**
 * Creates the missing secrets, and writes the files that are derived from them. Existing secrets are kept.
 * @param {string} dataDirectory
 * @param {Given} given
 * @param {Record<string, string>} older the variables of a stack.env of an older version, which had the passwords
 */
export function makeSecrets(dataDirectory, given, older) {
  const { operatorSecret, metricsToken, configSecrets, tls } = given;
  const directory = secretsDirectory(dataDirectory);
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const write = (name, content) => writeSecret(join(directory, name), tls ? overTls(name, content) : content);
  const once = (name, olderName) => {
    const file = join(directory, name);
    // An older version wrote an empty metrics token.
    if (!existsSync(file) || readFileSync(file, 'utf8').trim() === '')
      write(name, older[olderName] || randomBytes(PASSWORD_BYTES).toString('hex'));
    return readFileSync(file, 'utf8').trim();
  };

  once('postgres-password', 'TOLLGATE_POSTGRES_PASSWORD');
  for (const login of DATABASE_LOGINS) {
    const name = login.replace('_', '-');
    const password = once(`${name}-database-password`, `TOLLGATE_${login.toUpperCase()}_DATABASE_PASSWORD`);
    write(`${name}-database-url`, `postgres://${login}:${password}@postgres:5432/tollgate`);
  }
  for (const user of KAFKA_USERS) once(`kafka-${user}-password`);
  makeRedisUsers(once, write);
  write('operator-secret', operatorSecret);
  if (metricsToken) write('metrics-token', metricsToken);
  else once('metrics-token');
  once('idempotency-secrets');
  if (given.consoleSecret) write('console-secret', given.consoleSecret);
  else once('console-secret');
  // Empty: not set.
  write('former-operator-secret', given.formerOperatorSecret ?? '');
  write('oidc-client-secret', given.oidcClientSecret ?? '');
  write('smtp-url', given.smtpUrl ?? '');
  write('config-secrets', configSecrets);
}

/** A hash of the users of Redis. Redis reads them only at its start, so it must be restarted when the hash changes. */
export const redisUsersId = (dataDirectory) =>
  createHash('sha256')
    .update(readFileSync(join(secretsDirectory(dataDirectory), 'redis-users')))
    .digest('hex')
    .slice(0, ID_CHARS);

/** Creates a user of Redis for each service, one for people, and the ACL file of Redis. */
function makeRedisUsers(once, write) {
  // Loaded late, because it must be compiled first.
  const { aclFile, REDIS_USERS } = load(join(ROOT, 'libs/redis/dist/rights.js'));
  const passwords = Object.fromEntries([...REDIS_USERS, 'admin'].map((user) => [user, once(`${user}-redis-password`)]));
  for (const user of REDIS_USERS) write(`${user}-redis-url`, `redis://${user}:${passwords[user]}@redis:6379`);
  write('redis-users', aclFile(passwords).trim());
}

/** The address of a server with TLS, for a container in which docker-compose.tls.yml mounts the authority. */
function overTls(name, content) {
  if (name.endsWith('-database-url')) return `${content}?sslmode=verify-full&sslrootcert=/run/secrets/tls-ca`;
  if (name.endsWith('-redis-url')) return `${content.replace(/^redis:/, 'rediss:')}?ca=/run/secrets/tls-ca`;
  return content;
}

/** Writes the file in place, so that a container that mounts it reads the new content. */
export function writeSecret(file, content, mode = FILE_MODE) {
  if (existsSync(file)) {
    if (readFileSync(file, 'utf8').trim() === content) return;
    chmodSync(file, WRITABLE_MODE);
  }
  writeFileSync(file, `${content}\n`);
  chmodSync(file, mode);
}
