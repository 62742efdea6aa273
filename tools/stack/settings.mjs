// The settings of `npm run stack`: environment variables (variables.mjs) and secrets (secrets.mjs). From them it makes
// the variables of docker-compose.yml.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { hasPasswords, makeSecrets, redisUsersId, secretsDirectory } from './secrets.mjs';
import { declared, MAX_MEMORY_MIB, MEMORY, MIN_MEMORY_MIB } from './variables.mjs';

/** The bits of a file's mode for its group and all others. */
const OTHERS = 0o077;
const ID_CHARS = 12;
/** Time between the latest regular end of a service and its kill. */
const STOP_RESERVE_S = 15;
const OWN_SERVERS = [
  ['DATABASE_URL', 'PostgreSQL'],
  ['REDIS_URL', 'Redis'],
  ['KAFKA_BROKERS', 'Kafka'],
];
/** Read by the console alone, which checks them. */
const CONSOLE_SETTINGS = [
  'TOLLGATE_OIDC_ISSUER',
  'TOLLGATE_OIDC_CLIENT_ID',
  'TOLLGATE_OIDC_DOMAINS',
  'TOLLGATE_OIDC_ROLES',
  'TOLLGATE_OIDC_ROLES_CLAIM',
  'TOLLGATE_SMTP_FROM',
];
/** Numbers that reach the containers as they are. */
const NUMBERS = [
  'TOLLGATE_DRAIN_SECONDS',
  'TOLLGATE_LAME_DUCK_SECONDS',
  'TOLLGATE_INVOICE_CLOSE_MINUTES',
  'TOLLGATE_USAGE_KEPT_MONTHS',
  'TOLLGATE_MAX_BODY_MIB',
  'TOLLGATE_BODY_MEMORY_MIB',
  'TOLLGATE_IDEMPOTENCY_ANSWER_KIB',
  'TOLLGATE_IDEMPOTENCY_TENANT_MIB',
  'TOLLGATE_TRACES_PERCENT',
  'TOLLGATE_TRACES_SLOW_MS',
];
const OPERATOR_SECRET = /^[\x21-\x7e]{16,256}$/;
const OPERATOR_SECRET_MIN_BITS = 80;
/** Only these can be scaled. The others have data or an address, which exist once. */
export const SCALED_SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'];
/**
 * The load balancer has places for this many gateways and consoles, PostgreSQL connections for this many of the others.
 */
export const MAX_SCALE = 16;

/**
 * @typedef {Omit<import('./secrets.mjs').Given, 'configSecrets'>} Secrets
 * @typedef {{ project: string, dataDirectory: string, configFile: string, envFile: string }} Paths
 * @typedef {{ secrets: Secrets, secretsAreNew: boolean, demo: boolean, compose: Record<string, string> }} Rest
 * @param {NodeJS.ProcessEnv} env
 * @returns {Paths & Rest}
 *   `compose`: the variables of docker-compose.yml. Throws SetupError with a line for each setting that is wrong.
 */
export function readSettings(env) {
  const problems = [];
  const given = (name) => env[name] || undefined;
  const set = (name) => given(name) ?? declared(name).default;
  const number = (name, fallback = declared(name).default) => {
    const { min = 0, max } = declared(name);
    const text = given(name) ?? String(fallback);
    if (/^\d{1,7}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    problems.push(`${name} must be a whole number from ${min} to ${max}`);
    return fallback;
  };
  const choice = (name) => {
    const { values } = declared(name);
    const text = set(name);
    if (!values.includes(text)) problems.push(`${name} must be one of ${values.join(', ')}`);
    return text;
  };

  const port = number('TOLLGATE_PORT');
  const operatorPort = number(
    'TOLLGATE_OPERATOR_PORT',
    port === 0 ? 0 : Math.min(port + 1, declared('TOLLGATE_OPERATOR_PORT').max),
  );
  if (port === operatorPort && port !== 0) problems.push('TOLLGATE_OPERATOR_PORT must not be TOLLGATE_PORT');
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, number(name)]));
  const tcpRetries = choice('TOLLGATE_TCP_RETRIES');
  const project = set('COMPOSE_PROJECT_NAME');
  if (!/^[a-z0-9][a-z0-9_-]*$/.test(project))
    problems.push('COMPOSE_PROJECT_NAME must be lower-case letters, digits, - and _');
  const tag = set('TOLLGATE_TAG');
  if (!/^\w[\w.-]{0,127}$/.test(tag)) problems.push('TOLLGATE_TAG must be an image tag');
  const [operatorSecret, formerOperatorSecret] = ['TOLLGATE_OPERATOR_SECRET', 'TOLLGATE_FORMER_OPERATOR_SECRET'].map(
    (name) => {
      const secret = given(name);
      if (secret !== undefined && !OPERATOR_SECRET.test(secret))
        problems.push(`${name} must be 16 to 256 printable characters`);
      else if (secret !== undefined && entropyBits(secret) < OPERATOR_SECRET_MIN_BITS)
        problems.push(
          `${name} is too easy to guess: it needs at least ${OPERATOR_SECRET_MIN_BITS} bits of entropy. ` +
            'Make one with: openssl rand -hex 32',
        );
      return secret;
    },
  );
  const memory = memoryOf(given, problems);
  const images = choice('TOLLGATE_IMAGES');
  const logLevel = choice('TOLLGATE_LOG_LEVEL');
  const demo = choice('TOLLGATE_DEMO') === 'true';
  const tls = choice('TOLLGATE_STACK_TLS') === 'true';
  for (const [name, server] of OWN_SERVERS) {
    if (given(name) !== undefined)
      problems.push(`${name} is set, but the stack has its own ${server}: unset it, or start the services one by one`);
  }
  if (problems.length > 0) throw new SetupError(problems.join('\n'));

  const dataDirectory = resolve(set('TOLLGATE_DATA_DIR'));
  const configFile = resolve(set('TOLLGATE_CONFIG'));
  const envFile = join(dataDirectory, 'stack.env');
  const older = readOlder(envFile);
  const secrets = {
    operatorSecret: operatorSecret ?? writable(dataDirectory, () => keptOperatorSecret(dataDirectory)),
    formerOperatorSecret,
    metricsToken: given('TOLLGATE_METRICS_TOKEN') ?? '',
    consoleSecret: given('TOLLGATE_CONSOLE_SECRET'),
    oidcClientSecret: given('TOLLGATE_OIDC_CLIENT_SECRET'),
    smtpUrl: given('TOLLGATE_SMTP_URL'),
    tls,
  };
  const files = [given('COMPOSE_FILE') ?? join(ROOT, 'docker-compose.yml')];
  if (tls) files.push(join(ROOT, 'docker-compose.tls.yml'));
  const tracesUrl = given('TOLLGATE_TRACES_URL');
  if (tracesUrl !== undefined) files.push(join(ROOT, 'docker-compose.traces.yml'));
  const compose = {
    COMPOSE_PROJECT_NAME: project,
    COMPOSE_FILE: files.join(delimiter),
    ...imagesOf(images, env),
    TOLLGATE_TAG: tag,
    TOLLGATE_PORT: String(port),
    TOLLGATE_OPERATOR_PORT: String(operatorPort),
    TOLLGATE_CONFIG: configFile,
    ...Object.fromEntries(NUMBERS.map((name) => [name, String(numbers[name])])),
    TOLLGATE_STOP_SECONDS: String(numbers.TOLLGATE_DRAIN_SECONDS + numbers.TOLLGATE_LAME_DUCK_SECONDS + STOP_RESERVE_S),
    TOLLGATE_TRACES_URL: tracesUrl ?? '',
    TOLLGATE_TCP_RETRIES: tcpRetries,
    TOLLGATE_LOG_LEVEL: logLevel,
    TOLLGATE_OPERATOR_ALLOWED_HOSTS: given('TOLLGATE_OPERATOR_ALLOWED_HOSTS') ?? '',
    TOLLGATE_CONSOLE_URL: given('TOLLGATE_CONSOLE_URL') ?? (port === 0 ? '' : `http://localhost:${port}`),
    ...Object.fromEntries(CONSOLE_SETTINGS.map((name) => [name, given(name) ?? ''])),
    ...memory,
    TOLLGATE_SECRETS: secretsDirectory(dataDirectory),
    ...(given('NODE_EXTRA_CA_CERTS') ? { TOLLGATE_BUILD_CA: resolve(env.NODE_EXTRA_CA_CERTS) } : {}),
  };
  const secretsAreNew = !hasPasswords(dataDirectory, older);
  return { project, dataDirectory, configFile, envFile, secrets, secretsAreNew, demo, compose };
}

function memoryOf(given, problems) {
  const variables = {};
  for (const [server, { mib, part, share }] of Object.entries(MEMORY)) {
    const name = `TOLLGATE_${server}_MEMORY_MIB`;
    const text = given(name) ?? String(mib);
    const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
    if (limit < MIN_MEMORY_MIB)
      problems.push(`${name} must be a whole number from ${MIN_MEMORY_MIB} to ${MAX_MEMORY_MIB}`);
    variables[name] = String(limit);
    if (part) variables[`TOLLGATE_${server}_${part}_MIB`] = String(Math.floor(limit * share));
  }
  return variables;
}

/** Creates the secrets, and writes the variables to the file of `docker compose --env-file`. */
export function writeSettings({ dataDirectory, envFile, configFile, secrets, compose }, env) {
  writable(dataDirectory, () => {
    // Before the file is rewritten, because that of an older version has the passwords.
    makeSecrets(dataDirectory, { ...secrets, configSecrets: configSecrets(configFile, env) }, readOlder(envFile));
    compose.TOLLGATE_REDIS_USERS = redisUsersId(dataDirectory);
    compose.TOLLGATE_HAPROXY_FILES = haproxyFilesId();
    // An older version wrote this file, for the environment of the containers.
    rmSync(join(dataDirectory, 'stack.config-secrets.env'), { force: true });
    const lines = Object.entries(compose).map(([name, value]) => `${name}=${quoted(value)}`);
    writeFileSync(envFile, `${lines.join('\n')}\n`, { mode: 0o600 });
  });
}

/**
 * A hash of the files that HAProxy mounts. It reads them at its start, and keeps a file that an upgrade replaced. So it
 * must be recreated when the hash changes.
 */
export function haproxyFilesId(directory = join(ROOT, 'deploy', 'haproxy')) {
  const hash = createHash('sha256');
  for (const name of readdirSync(directory).sort())
    hash.update(`${name}\n`).update(readFileSync(join(directory, name)));
  return hash.digest('hex').slice(0, ID_CHARS);
}

/** A line for each `${NAME}` of tollgate.yaml, from the environment or the operator's TOLLGATE_CONFIG_SECRETS_FILE. */
function configSecrets(configFile, env) {
  const file = env.TOLLGATE_CONFIG_SECRETS_FILE;
  const given = { ...(file ? parseEnv(readFileSync(file, 'utf8')) : {}), ...withoutEmpty(env) };
  const named = readFileSync(configFile, 'utf8').matchAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g);
  const set = [...new Set([...named].map(([, name]) => name))].filter((name) => given[name]);
  return set.map((name) => `${name}=${enclosed(name, given[name])}`).join('\n');
}

/** Quotes a value for `parseEnv`, which reads quoted text literally, except \n between double quotes. */
function enclosed(name, value) {
  const mark = ["'", '`', '"'].find((each) => !value.includes(each) && !(each === '"' && value.includes('\\n')));
  if (mark === undefined)
    throw new SetupError(
      `${name} has every kind of quotation mark. Put it into a file, and name the file in tollgate.yaml as file:…`,
    );
  return `${mark}${value}${mark}`;
}

const withoutEmpty = (env) => Object.fromEntries(Object.entries(env).filter(([, value]) => value));

/** A copy of `entropyBits` of libs/runtime, which may not be built yet. test/stack/settings.test.ts compares them. */
export function entropyBits(secret) {
  const kinds = [
    [/[0-9]/, 10],
    [/[a-z]/, 26],
    [/[A-Z]/, 26],
    [/[^0-9A-Za-z]/, 33],
  ];
  const alphabet = kinds.reduce((sum, [form, size]) => sum + (form.test(secret) ? size : 0), 0);
  const counts = new Map();
  for (const character of secret) counts.set(character, (counts.get(character) ?? 0) + 1);
  const length = [...secret].length;
  const repetition = [...counts.values()].reduce((sum, count) => sum + count * Math.log2(length / count), 0);
  const correction = (Math.max(0, counts.size - 1) / 2) * Math.LOG2E;
  return Math.min(length * Math.log2(Math.max(1, alphabet)), repetition + correction);
}

/** Quotes a value for Compose's environment files. */
const quoted = (value) =>
  value.includes("'") ? `"${value.replace(/[\\"$]/g, (character) => `\\${character}`)}"` : `'${value}'`;

/** The same file as that of `npm start`. */
function keptOperatorSecret(dataDirectory) {
  mkdirSync(dataDirectory, { recursive: true });
  const file = join(dataDirectory, 'operator.secret');
  // A full disk left an empty one at the first start.
  if (!existsSync(file) || readFileSync(file, 'utf8').trim() === '')
    writeFileSync(file, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  if (statSync(file).mode & OTHERS) throw new SetupError(`Other users can read ${file}. Run: chmod 600 ${file}`);
  return readFileSync(file, 'utf8').trim();
}

const readOlder = (envFile) => (existsSync(envFile) ? parseEnv(readFileSync(envFile, 'utf8')) : {});

function imagesOf(images, env) {
  const defaults = parseEnv(readFileSync(join(ROOT, 'deploy', 'images', `${images}.env`), 'utf8'));
  return Object.fromEntries(Object.entries(defaults).map(([name, image]) => [name, env[name] || image]));
}

function writable(dataDirectory, work) {
  try {
    return work();
  } catch (error) {
    if (error.code === undefined) throw error;
    throw new SetupError(
      `The data directory ${dataDirectory} is not writable (${error.code}). ` +
        'Choose another with TOLLGATE_DATA_DIR, or fix its permissions.',
    );
  }
}
