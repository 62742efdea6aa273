// Books with a long history: tenants, thousands of keys, and millions of events, recorded and charged. They are made
// once in a data directory and kept there, as ten million events take a quarter of an hour.
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SetupError } from '../../setup/prepare.mjs';
import { newTenant, usableHeaders } from '../gateways/tollgate.mjs';
import { answered, MEASURED, runNode } from '../machine/processes.mjs';
import { withDatabase } from '../measure/database.mjs';

const TENANTS = 40;
const KEYS_OF_FIRST = 1_500;
const KEYS_OF_OTHERS = 40;
const AT_ONCE = 16;
const USABLE_TIMEOUT_MS = 60_000;
/** In the data directory, beside the operator secret: it has secrets, too. */
const FILE = 'bench-books.json';

/**
 * @param {string} directory  the data directory of the form
 * @returns {Promise<{ tenants: object[], events: number }>} the first tenant has most of the events
 */
export async function openBooks(form, { directory, events, say }) {
  const file = join(directory, FILE);
  if (existsSync(file)) {
    const books = keptBooks(directory);
    if (books.events === events) return books;
    throw new SetupError(`${directory} has the books of ${books.events} events`);
  }
  say(`making ${TENANTS} tenants and their keys …`);
  const tenants = [];
  for (let i = 0; i < TENANTS; i++) tenants.push(await tenantOf(form, i === 0 ? KEYS_OF_FIRST : KEYS_OF_OTHERS));
  say(`recording ${events} events …`);
  await fill(form, tenants, events);
  await withDatabase(form.database, (client) => client.query('VACUUM (ANALYZE)'));
  const books = { events, tenants };
  writeFileSync(`${file}.new`, JSON.stringify(books), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return books;
}

/** The books that are in a data directory. */
export const keptBooks = (directory) => JSON.parse(readFileSync(join(directory, FILE), 'utf8'));

async function tenantOf(form, keys) {
  const tenant = await newTenant(form, { name: 'growth', token: true });
  await usableHeaders(form.url, tenant);
  const keyIds = [tenant.keyId];
  let left = keys - 1;
  const make = async () => {
    while (left-- > 0) keyIds.push(await newKey(form, tenant.tenantId));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, make));
  return { ...tenant, keyIds };
}

function newKey({ operatorUrl, operatorSecret }, tenantId) {
  return answered(
    async () => {
      const answer = await fetch(`${operatorUrl}/_operator/v1/tenants/${tenantId}/keys`, {
        method: 'POST',
        headers: { authorization: `Bearer ${operatorSecret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'growth' }),
      });
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
      return (await answer.json()).data.id;
    },
    { timeoutMs: USABLE_TIMEOUT_MS },
  );
}

/** Records and charges events of the last month. */
export async function fill({ database }, tenants, events) {
  const { host, port, user, password } = database;
  const login = `${user}:${encodeURIComponent(password)}`;
  const url = `postgres://${login}@/${database.database}?host=${encodeURIComponent(host)}&port=${port}`;
  const owners = tenants.map(({ tenantId, keyId, keyIds = [keyId] }) => ({ tenantId, keyIds }));
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  try {
    const file = join(directory, 'fill.json');
    writeFileSync(file, JSON.stringify({ url, events, owners }), { mode: 0o600 });
    await runNode(MEASURED, [join(import.meta.dirname, 'fill.mjs'), file]);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
