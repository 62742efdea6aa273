// Records usage and posts it, with the code of metering and billing, at many times the speed of requests. So the books
// stay complete: `reconcile` finds no difference afterwards. Usage: fill.mjs '{"url":…,"owners":[…],"events":100000}'
// `owners`: { tenantId, keyId } of tenants with enough credit.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../../setup/prepare.mjs';

const require = createRequire(import.meta.url);
const ofApp = (app, file) => require(join(ROOT, 'apps', app, 'dist', `${file}.js`));
const { newId } = require(join(ROOT, 'libs/contracts/dist/index.js'));
const { transaction, copyInOn } = require(join(ROOT, 'libs/postgres/dist/index.js'));
const { openMeteringDatabase } = ofApp('metering', 'database');
const { recordEvents } = ofApp('metering', 'record/record-events');
const { addToSums, sumUp } = ofApp('metering', 'record/roll-up');
const { addToBackends, sumByBackend } = ofApp('metering', 'record/backend-hours');
const { chargeOf } = ofApp('metering', 'publish/charges');
const { openBillingDatabase } = ofApp('billing', 'database');
const { ChargeGatherer } = ofApp('billing', 'gather/charge-gatherer');
const { Poster } = ofApp('billing', 'post/poster');

const BATCH_EVENTS = 1_000;
/** Of one batch: each gets an entry of the journal. */
const BATCH_TENANTS = 20;
/** Over which the usage is spread. */
const DAYS = 20;
const DAY_MS = 86_400_000;
const PRICE = {
  version: 'growth',
  ...{ inputFemtos: '5000000000', cachedInputFemtos: '5000000000', outputFemtos: '20000000000', requestNanos: '0' },
};

const { url, owners, events } = JSON.parse(process.argv[2]);
const [metering, billing] = await Promise.all([openMeteringDatabase(url), openBillingDatabase(url)]);
const gatherer = new ChargeGatherer(billing, { postingIntervalMs: 0 });
const poster = new Poster(billing, { postingIntervalMs: 0 });
const began = Date.now();

function batchOf(first) {
  const someone = Array.from({ length: BATCH_TENANTS }, (_, i) => owners[(first + i) % owners.length]);
  return Array.from({ length: BATCH_EVENTS }, (_, i) => {
    const at = new Date(began - Math.random() * DAYS * DAY_MS).toISOString();
    const [promptTokens, completionTokens] = [100 + (i % 100), 100];
    const costNanos = BigInt(promptTokens) * 5_000n + BigInt(completionTokens) * 20_000n;
    const event = {
      ...{ id: newId('req'), ...someone[i % BATCH_TENANTS], model: 'bench', kind: 'chat', stream: false, price: PRICE },
      ...{ startedAt: at, endedAt: at, promptTokens, cachedTokens: 0, completionTokens },
      ...{ costNanos: String(costNanos), overrunNanos: '0', estimated: false, outcome: 'complete', backend: 'bench' },
    };
    return { event, chargeNanos: costNanos, overrunNanos: 0n };
  });
}

for (let done = 0; done < events; done += BATCH_EVENTS) {
  const rated = batchOf((done / BATCH_EVENTS) * BATCH_TENANTS);
  await transaction(metering, async (tx) => {
    await recordEvents(await copyInOn(tx), rated);
    await addToSums(tx, sumUp(rated));
    await addToBackends(tx, sumByBackend(rated.map(({ event }) => event)));
  });
  await gatherer.gather(rated.map(chargeOf));
  await poster.postDue();
}
await Promise.all([metering.destroy(), billing.destroy()]);
