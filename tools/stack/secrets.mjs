// The secrets of the composed services: a file each in <data directory>/secrets, which docker-compose.yml mounts into the containers that need it. Nothing of them is in the environment of a container,
// so neither `docker inspect` nor `docker compose config` shows them.
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';

const load = createRequire(import.meta.url);

/** The directory keeps others out; the files must be readable by whatever user a container runs as. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o444;
const WRITABLE_MODE = 0o600;
const PASSWORD_BYTES = 24;
const ID_CHARS = 12;
/** Each has a login of its own at PostgreSQL. */
const DATABASE_LOGINS = ['auth', 'metering', 'billing'];

export const secretsDirectory = (dataDirectory) => join(dataDirectory, 'secrets');

/** Whether the data of an earlier start can be opened: their passwords are here, or among the variables of an older stack.env. */
export const hasPasswords = (dataDirectory, older) =>
  existsSync(join(secretsDirectory(dataDirectory), 'postgres-password')) || Boolean(older.TOLLGATE_POSTGRES_PASSWORD);

/**
 * Makes what is missing, and writes what is derived. Safe to repeat: what was made once stays.
 * @param {string} dataDirectory
 * @param {{ operatorSecret: string, metricsToken: string, configSecrets: string }} given
 * @param {Record<string, string>} older the variables of an older stack.env, which had the passwords
 */
export function makeSecrets(dataDirectory, { operatorSecret, metricsToken, configSecrets }, older) {
  const directory = secretsDirectory(dataDirectory);
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const write = (name, content) => writeSecret(join(directory, name), content);
  const once = (name, olderName) => {
    const file = join(directory, name);
    // Of the metrics token an earlier version wrote an empty one.
    if (!existsSync(file) || readFileSync(file, 'utf8').trim() === '')
      write(name, older[olderName] || randomBytes(PASSWORD_BYTES).toString('hex'));
    return readFileSync(file, 'utf8').trim();
  };

  once('postgres-password', 'TOLLGATE_POSTGRES_PASSWORD');
  for (const login of DATABASE_LOGINS) {
    const password = once(`${login}-database-password`, `TOLLGATE_${login.toUpperCase()}_DATABASE_PASSWORD`);
    write(`${login}-database-url`, `postgres://${login}:${password}@postgres:5432/tollgate`);
  }
  makeRedisUsers(once, write);
  write('operator-secret', operatorSecret);
  if (metricsToken) write('metrics-token', metricsToken);
  else once('metrics-token');
  write('config-secrets', configSecrets);
}

/** What tells one set of users of Redis from another, and no secret: Redis reads them at its start alone. */
export const redisUsersId = (dataDirectory) =>
  createHash('sha256')
    .update(readFileSync(join(secretsDirectory(dataDirectory), 'redis-users')))
    .digest('hex')
    .slice(0, ID_CHARS);

/** A user of Redis for each service, one for people, and the file that tells Redis of them. */
function makeRedisUsers(once, write) {
  // Compiled by now.
  const { aclFile, REDIS_USERS } = load(join(ROOT, 'libs/redis/dist/rights.js'));
  const passwords = Object.fromEntries([...REDIS_USERS, 'admin'].map((user) => [user, once(`${user}-redis-password`)]));
  for (const user of REDIS_USERS) write(`${user}-redis-url`, `redis://${user}:${passwords[user]}@redis:6379`);
  write('redis-users', aclFile(passwords).trim());
}

/** In place: a container that has the file mounted reads the new content. */
function writeSecret(file, content) {
  if (existsSync(file)) {
    if (readFileSync(file, 'utf8').trim() === content) return;
    chmodSync(file, WRITABLE_MODE);
  }
  writeFileSync(file, `${content}\n`);
  chmodSync(file, FILE_MODE);
}
