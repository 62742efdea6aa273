// Records usage and posts it, with the code of metering and billing, at many times the speed of requests. So the books
// stay complete: `reconcile` finds no difference afterwards. The events are those of the last days, in the order
// of time, and their ids are of that time, as if they had just been served. The first owner has most of them.
// Usage: fill.mjs <file>, with { "url": …, "owners": […], "events": 100000 }
// `owners`: { tenantId, keyIds } of tenants with enough credit. Optional: `days`, over which the usage is spread,
// `batches`, each of which posts an entry, and `models`.
import pg from 'pg';
import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../../setup/prepare.mjs';

const require = createRequire(import.meta.url);
const ofApp = (app, file) => require(join(ROOT, 'apps', app, 'dist', `${file}.js`));
const { idBound } = require(join(ROOT, 'libs/contracts/dist/index.js'));
const { transaction, copyInOn, openDataSource } = require(join(ROOT, 'libs/postgres/dist/index.js'));
const { openMeteringDatabase } = ofApp('metering', 'database');
const { recordEvents } = ofApp('metering', 'record/record-events');
const { recordCallerRequests } = ofApp('metering', 'record/caller-requests');
const { addToSums, sumUp } = ofApp('metering', 'record/roll-up');
const { UsageDays } = ofApp('metering', 'record/usage-days');
const { addToBackends, sumByBackend } = ofApp('metering', 'record/backend-hours');
const { chargeOf } = ofApp('metering', 'publish/charges');
const { ChargeGatherer } = ofApp('billing', 'gather/charge-gatherer');
const { Poster } = ofApp('billing', 'post/poster');

const MAX_BATCH_EVENTS = 5_000;
/** At least, by default. So the first tenants of small books have full pages of entries, too. */
const MIN_BATCHES = 500;
const DAYS = 30;
const DAY_MS = 86_400_000;
/** The first tenant's share of all events. */
const SHARE_OF_FIRST = 0.6;
/** Few keys, models and tenants have most of the usage of theirs. */
const SKEW = 2.5;
const SHARE_OF_OWN_MODEL = 0.8;
const MODELS = ['bench', 'bench-paced', 'bench-slow', 'sim', 'sim-small'];
const BACKENDS = ['https://gpu-1.example', 'https://gpu-2.example', 'https://gpu-3.example'];
/** The outcomes other than `complete`, and their shares. */
const UNFINISHED = [
  ['client_closed', 0.012],
  ['upstream_error', 0.005],
  ['credit_ended', 0.002],
  ['expired', 0.001],
];
const SHARE_WITH_CALLERS_ID = 0.05;
const LONGEST_MS = 20_000;
const ID_DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
/** The random digits of an id, behind the digits of its time. */
const RANDOM_DIGITS = 16;
const PRICE = {
  version: 'growth',
  ...{ inputFemtos: '5000000000', cachedInputFemtos: '5000000000', outputFemtos: '20000000000', requestNanos: '0' },
};
const LIFE = { key: [600, 1_000_000, 64], tenant: [6_000, 10_000_000, 512], heldNanos: '90000000', firstMs: 180 };
const BILLING_CONNECTIONS = 4;
/** Where the balance updates go that would release the holds. */
const UNSENT = 'bench_unsent';

const {
  url,
  owners,
  events,
  days = DAYS,
  batches = MIN_BATCHES,
  models = MODELS,
} = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const owner = new pg.Client(url);
await owner.connect();
const metering = await openMeteringDatabase(url);
const endMs = Date.now() - LONGEST_MS;
const beginMs = endMs - days * DAY_MS;

const below = (count) => Math.floor(Math.random() * count);
const skewed = (count) => Math.floor(Math.random() ** SKEW * count);

function anyOwner() {
  if (owners.length === 1 || Math.random() < SHARE_OF_FIRST) return owners[0];
  return owners[1 + skewed(owners.length - 1)];
}

/** Ids of one time differ by chance, not by a count as the gateway's do. */
function idOf(ms) {
  let id = idBound('req', ms).slice(0, -RANDOM_DIGITS);
  for (let i = 0; i < RANDOM_DIGITS; i++) id += ID_DIGITS[below(ID_DIGITS.length)];
  return id;
}

function anyOutcome() {
  let chance = Math.random();
  for (const [outcome, share] of UNFINISHED) if ((chance -= share) < 0) return outcome;
  return 'complete';
}

function eventAt(startedMs) {
  const { tenantId, keyIds } = anyOwner();
  const key = skewed(keyIds.length);
  const model = models[Math.random() < SHARE_OF_OWN_MODEL ? key % models.length : skewed(models.length)];
  const [promptTokens, completionTokens] = [50 + below(2_000), 1 + below(400)];
  const costNanos = BigInt(promptTokens) * 5_000n + BigInt(completionTokens) * 20_000n;
  const id = idOf(startedMs);
  const event = {
    ...{ id, tenantId, keyId: keyIds[key], model, kind: 'chat', stream: Math.random() < 0.5, price: PRICE },
    ...(Math.random() < SHARE_WITH_CALLERS_ID && { callerRequestId: `job-${id.slice(-12)}` }),
    startedAt: new Date(startedMs).toISOString(),
    endedAt: new Date(startedMs + below(LONGEST_MS)).toISOString(),
    ...{ promptTokens, cachedTokens: below(50), completionTokens, reasoningTokens: below(completionTokens) },
    ...{ costNanos: String(costNanos), overrunNanos: '0', estimated: Math.random() < 0.01, outcome: anyOutcome() },
    ...{ backend: BACKENDS[below(BACKENDS.length)], life: LIFE },
  };
  return { event, chargeNanos: costNanos, overrunNanos: 0n };
}

/** In the order of their ids. */
function batchFrom(first, count) {
  const startOf = (index) => Math.floor(beginMs + ((endMs - beginMs) * index) / events);
  const [fromMs, untilMs] = [startOf(first), startOf(first + count)];
  const starts = Array.from({ length: count }, () => fromMs + below(Math.max(1, untilMs - fromMs)));
  return starts.map(eventAt).sort((a, b) => (a.event.id < b.event.id ? -1 : 1));
}

async function record(rated) {
  const plain = rated.map(({ event }) => event);
  await transaction(metering, async (tx) => {
    await recordEvents(await copyInOn(tx), rated);
    await addToSums(tx, sumUp(rated));
    await addToBackends(tx, sumByBackend(plain));
    await recordCallerRequests(tx, plain);
  });
}

/**
 * Billing, whose outbox is a table that nobody reads. Its messages would release 10 million holds that were never
 * placed. The newest balance of each tenant is sent at the end.
 */
async function openBilling() {
  await owner.query(`DROP SCHEMA IF EXISTS ${UNSENT} CASCADE;
    CREATE SCHEMA ${UNSENT};
    CREATE UNLOGGED TABLE ${UNSENT}.outbox (LIKE billing.outbox INCLUDING ALL);
    GRANT ALL ON SCHEMA ${UNSENT} TO public;
    GRANT ALL ON ALL TABLES IN SCHEMA ${UNSENT} TO public`);
  const applicationName = 'tollgate-bench';
  const schema = `${UNSENT},billing`;
  return openDataSource({ url, schema, applicationName, poolSize: BILLING_CONNECTIONS, role: 'tollgate_billing' });
}

async function sendBalances() {
  await owner.query(
    `INSERT INTO billing.outbox (topic, data)
     SELECT DISTINCT ON (data ->> 'tenantId') topic, data || '{"releases": []}'
     FROM ${UNSENT}.outbox WHERE topic = 'credit-news' ORDER BY data ->> 'tenantId', id DESC;
     DROP SCHEMA ${UNSENT} CASCADE`,
  );
}

const billing = await openBilling();
const gatherer = new ChargeGatherer(billing, { postingIntervalMs: 0 });
const poster = new Poster(billing, { postingIntervalMs: 0 });

async function charge(rated) {
  await gatherer.gather(rated.map(chargeOf));
  await poster.postDue();
}

let charged = Promise.resolve();
const batchEvents = Math.min(MAX_BATCH_EVENTS, Math.ceil(events / batches));
for (let done = 0; done < events; done += batchEvents) {
  const rated = batchFrom(done, Math.min(batchEvents, events - done));
  // Billing charges a batch while metering records the next one.
  await Promise.all([record(rated), charged]);
  charged = charge(rated);
}
await charged;
await sendBalances();
// Metering does it a quarter of an hour after its start.
await new UsageDays(metering).fold();
await Promise.all([metering.destroy(), billing.destroy(), owner.end()]);
