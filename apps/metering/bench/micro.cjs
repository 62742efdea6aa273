require('reflect-metadata');
const { newId } = require('@tollgate/contracts');
const { whyNotUsageEvent } = require('../dist/consume/read-usage-event.js');
const { rate } = require('../dist/price/rate.js');
const { chargeOf } = require('../dist/publish/charges.js');
const R = require('../dist/record/record-events.js'),
  U = require('../dist/record/roll-up.js');
const t = Array.from({ length: 8 }, () => newId('ten')),
  k = Array.from({ length: 16 }, () => newId('key'));
const startedAt = new Date().toISOString();
const evs = JSON.parse(
  JSON.stringify(
    Array.from({ length: 1000 }, (_, i) => ({
      id: newId('req'),
      tenantId: t[i % 8],
      keyId: k[i % 16],
      model: i % 3 ? 'sim-small' : 'sim-large',
      kind: 'chat',
      stream: i % 2 === 0,
      price: {
        version: 'a1b2c3d4',
        inputFemtos: '150000000',
        cachedInputFemtos: '75000000',
        outputFemtos: '600000000',
        requestNanos: '0',
      },
      startedAt,
      endedAt: new Date().toISOString(),
      promptTokens: 100 + i,
      cachedTokens: 0,
      completionTokens: 50,
      costNanos: String((100 + i) * 150 + 50 * 600),
      overrunNanos: '0',
      estimated: false,
      outcome: 'complete',
    })),
  ),
);
function time(name, f) {
  for (let i = 0; i < 30; i++) f();
  const s = performance.now();
  for (let i = 0; i < 100; i++) f();
  console.log(name, ((performance.now() - s) / 100).toFixed(2), 'ms/1000');
}
time('validate', () => evs.map((e) => whyNotUsageEvent(e)));
time('rate', () => evs.map(rate));
const rated = evs.map((event) => ({ event, ...rate(event) }));
time('charge json', () => JSON.stringify(rated.map(chargeOf)));
const tx = { query: () => Promise.resolve([]) };
time('insert literals', () => {
  R.insertNewEvents(tx, rated);
});
time('rollup', () => {
  U.addToSums(tx, rated);
});
time('sort', () => [...new Map(evs.map((e) => [e.id, e])).values()].sort((a, b) => (a.id < b.id ? -1 : 1)));
