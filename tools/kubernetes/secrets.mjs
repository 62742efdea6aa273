// Creates the Secrets of a trial (docs/operating/kubernetes.md) and prints them as manifests:
// node tools/kubernetes/secrets.mjs [--release tollgate] [--directory .tollgate/kubernetes]
// Passwords and keys are files in the directory. Existing ones are kept. Needs a compiled checkout.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { ROOT } from '../setup/prepare.mjs';
import { makeMessageKeys } from '../stack/message-keys.mjs';
import { makeSecrets, secretsDirectory, writeSecret } from '../stack/secrets.mjs';

const SECRET_BYTES = 32;
const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'];
const OWNERS = ['auth', 'metering', 'billing', 'console'];
const STORES = ['postgres', 'redis'];

/**
 * The Secrets of a release with `devStores`, as manifests. It creates the files that are missing.
 * @param {string} release prefix of the names of the stores
 * @param {string} directory
 */
export function secretManifests(release, directory) {
  const read = (name) => readFileSync(join(secretsDirectory(directory), name), 'utf8').trim();
  const kept = (name) => {
    try {
      return read(name);
    } catch {
      return randomBytes(SECRET_BYTES).toString('hex');
    }
  };
  const operatorSecret = kept('operator-secret');
  makeSecrets(directory, { operatorSecret, metricsToken: '', configSecrets: '', tls: false }, {});
  makeMessageKeys(directory);
  const adminFile = join(secretsDirectory(directory), 'kafka-admin-password');
  writeSecret(adminFile, kept('kafka-admin-password'));
  const admin = read('kafka-admin-password');
  // The stack's stores have the names of its containers.
  const url = (name) => STORES.reduce((text, store) => text.replace(`@${store}:`, `@${release}-${store}:`), read(name));
  const filesLike = (pattern) =>
    Object.fromEntries(
      readdirSync(secretsDirectory(directory))
        .filter((name) => pattern.test(name))
        .map((name) => [name, read(name)]),
    );

  const secrets = {
    ...Object.fromEntries(
      SERVICES.map((service) => [
        service,
        {
          ...(service === 'console'
            ? { 'console-secret': read('console-secret') }
            : { 'redis-url': url(`${service}-redis-url`) }),
          'kafka-password': read(`kafka-${service}-password`),
          'message-keys': read(`${service}-message-keys`),
          ...(service === 'gateway'
            ? { 'operator-secret': read('operator-secret'), 'config-secrets': '' }
            : { 'database-url': url(`${service}-database-url`) }),
        },
      ]),
    ),
    ...Object.fromEntries(
      OWNERS.map((owner) => [`${owner}-owner`, { 'database-url': url(`${owner}-owner-database-url`) }]),
    ),
    functions: { 'redis-url': url('functions-redis-url') },
    metrics: { token: read('metrics-token') },
    'postgres-admin': {
      password: read('postgres-password'),
      ...filesLike(/^(auth|metering|billing|console).*-database-password$/),
    },
    'kafka-admin': {
      password: admin,
      ...filesLike(/^kafka-(gateway|auth|metering|billing|console)-password$/),
      // The listener ADMIN of the broker knows this one user.
      'broker-jaas':
        'org.apache.kafka.common.security.plain.PlainLoginModule required ' +
        `username="admin" password="${admin}" user_admin="${admin}";`,
    },
    'dev-redis': { 'users.acl': `${read('redis-users')}\n` },
  };
  return Object.entries(secrets).map(([name, stringData]) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `tollgate-${name}` },
    stringData,
  }));
}

if (process.argv[1] === import.meta.filename) {
  const { release = 'tollgate', directory = join(ROOT, '.tollgate', 'kubernetes') } = parseArgs({
    options: { release: { type: 'string' }, directory: { type: 'string' } },
  }).values;
  for (const manifest of secretManifests(release, resolve(directory)))
    process.stdout.write(`---\n${stringify(manifest, { lineWidth: 0 })}`);
}
