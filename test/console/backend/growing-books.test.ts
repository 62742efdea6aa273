import { mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { ConfigSource } from '@tollgate/runtime';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { FleetStates } from '../../../apps/console/src/api/operator/fleet-states';
import { MoneyController } from '../../../apps/console/src/api/records/money.controller';
import { Overviews } from '../../../apps/console/src/api/usage/overviews';
import { RequestsController } from '../../../apps/console/src/api/records/requests.controller';
import { UsageController } from '../../../apps/console/src/api/usage/usage.controller';
import { useServices } from '../../surfaces/services';
import { type Statement, useStatementBuffers } from './statement-buffers';

// What the backend of the console reads for its pages, in small books and in books that have grown by twenty times.
const FILL = resolve(__dirname, '../../../tools/bench/growth/fill.mjs');
const [SMALL_EVENTS, LARGE_EVENTS] = [5_000, 100_000];
/**
 * The same for both, so that a row of an hour is written as often. They are so few that the sums of the small books
 * have each hour of each key and model: from there on, more requests are no more sums.
 */
const SHAPE = { days: 2, batches: 60, models: ['sim', 'sim-small'] };
const KEYS = 2;
/** The top-ups of the small books, which with their usage have three pages of entries. */
const TOP_UPS = 90;
const MORE_TOP_UPS = 300;
const CREDIT_CENTS = 10_000_000;
/**
 * With twenty times as much behind it, a call may read twice as much. The sums of a range lie further apart then, and
 * of the last three hours, which are not folded, the few requests that did not end normally are counted one by one.
 */
const MAX_RATIO = 2;
/** An index of more rows is deeper, and a statement of a small table reads one page or two. */
const MORE_OF_A_STATEMENT = 3;
/** Each row of a list may lie in a page of its own. A small table is read as a whole instead. */
const MORE_OF_A_LIST = 51;
const LISTS = /^(Requests|Credit)/;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Owner {
  tenantId: string;
  keyIds: string[];
}

type Measured = Record<string, Statement[]>;

const buffers = useStatementBuffers();
const services = useServices();
let small: Owner;
let large: Owner;
/** The small owner's times, alone and beside the large one, and the large owner's times. */
let measured: { alone: Measured; beside: Measured; large: Measured };

beforeAll(async () => {
  [small, large] = [await newOwner(), await newOwner()];
  for (let n = 0; n < TOP_UPS; n++) await topUp(small.tenantId, 1, String(n));
  await fill(small, SMALL_EVENTS);
  const alone = await measure(small);
  for (let n = 0; n < TOP_UPS + MORE_TOP_UPS; n++) await topUp(large.tenantId, 1, String(n));
  await fill(large, LARGE_EVENTS);
  measured = { alone, beside: await measure(small), large: await measure(large) };
});

async function newOwner(): Promise<Owner> {
  const { tenantId } = await services.tenant();
  const keyIds: string[] = [];
  for (let key = 0; key < KEYS; key++) {
    const { hash, last4 } = mintCredential('key');
    const made = await services.messages.request('auth.keys.create', { tenantId, name: `key ${key}`, hash, last4 });
    keyIds.push(made.id);
  }
  await topUp(tenantId, CREDIT_CENTS, 'first');
  return { tenantId, keyIds };
}

const topUp = (tenantId: string, amountCents: number, ref: string) =>
  services.messages.request('billing.credit.add', { tenantId, amountCents, source: 'test', ref: `${tenantId} ${ref}` });

/** Records and posts usage with the code of metering and billing. */
async function fill(owner: Owner, events: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-growing-'));
  try {
    const file = join(directory, 'fill.json');
    writeFileSync(file, JSON.stringify({ url: services.database.url, owners: [owner], events, ...SHAPE }));
    await promisify(execFile)(process.execPath, [FILL, file]);
  } finally {
    rmSync(directory, { recursive: true });
  }
  await services.database.query('VACUUM (ANALYZE)');
}

/**
 * The calls of the pages. A search by key, model or outcome is not among them: its pages end after a time, and after
 * the hours that it may search, so their number of reads depends on the speed of the machine.
 */
async function callsOf({ tenantId }: Owner): Promise<Record<string, () => Promise<unknown>>> {
  const client = new ServiceClient(services.messages);
  const config = { current: services.config } as ConfigSource;
  const usage = new UsageController(client, config, new Overviews(client));
  const requests = new RequestsController(client);
  const money = new MoneyController(client);
  const fleet = new FleetStates(client, config);
  const range = (days: number, step: 'hour' | 'day') => {
    const stepMs = step === 'hour' ? HOUR_MS : DAY_MS;
    const toMs = (Math.floor(Date.now() / stepMs) + 1) * stepMs;
    return { from: new Date(toMs - days * DAY_MS).toISOString(), to: new Date(toMs).toISOString(), step };
  };
  const { nextCursor } = await requests.list(tenantId, {});
  const { entries } = await money.credit(tenantId, {});
  return {
    Overview: () => usage.overview(tenantId),
    'Usage, 30 days by model': () => usage.usage(tenantId, { ...range(30, 'day'), by: 'model' }),
    'Usage, 30 days by key': () => usage.usage(tenantId, { ...range(30, 'day'), by: 'key' }),
    'Usage, 7 days by hour and key': () => usage.usage(tenantId, { ...range(7, 'hour'), by: 'key' }),
    Requests: () => requests.list(tenantId, {}),
    'Requests, next page': () => requests.list(tenantId, { after: nextCursor }),
    Credit: () => money.credit(tenantId, {}),
    'Credit, next page': () => money.credit(tenantId, { after: entries.at(-1)!.id }),
    Fleet: () => fleet.now(),
  };
}

async function measure(owner: Owner): Promise<Measured> {
  const found: Measured = {};
  for (const [name, call] of Object.entries(await callsOf(owner))) {
    // The first time, connections also read what the tables are.
    await call();
    found[name] = await buffers.of(call);
  }
  return found;
}

const sum = (statements: readonly Statement[]) => statements.reduce((total, { buffers: read }) => total + read, 0);
const allowed = (name: string, before: readonly Statement[]) =>
  MAX_RATIO * sum(before) + MORE_OF_A_STATEMENT * before.length + (LISTS.test(name) ? MORE_OF_A_LIST : 0);

it.each([
  ['of others', 'beside'],
  ['of its own', 'large'],
] as const)('no page of a tenant reads more when the books %s have grown', (_whose, which) => {
  const { alone, [which]: grown } = measured;
  expect(Object.keys(grown)).toEqual(Object.keys(alone));
  const tooMuch = Object.entries(grown)
    .filter(([name, statements]) => sum(statements) > allowed(name, alone[name]!))
    .map(([name, statements]) => ({ name, allowed: allowed(name, alone[name]!), before: alone[name], statements }));
  expect(tooMuch).toEqual([]);
  for (const statements of Object.values(grown)) expect(sum(statements)).toBeGreaterThan(0);
});

it('a statement that reads all requests of a tenant would be found', async () => {
  const client = new Client({ connectionString: services.database.url });
  await client.connect();
  try {
    const all = 'SELECT count(cost_nanos) FROM metering.usage_event WHERE tenant_id = $1';
    const reads = ({ tenantId }: Owner) => buffers.of(() => client.query(all, [tenantId]));
    expect(sum(await reads(large))).toBeGreaterThan(allowed('Requests', await reads(small)));
  } finally {
    await client.end();
  }
});
