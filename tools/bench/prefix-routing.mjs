// prefix-routing.mjs [--backends 4] [--sessions 400] [--concurrency 64] [--seed 1]: what `routing: prefix` of a model
// is worth. The gateway's own choice of backends plays conversations on engines with a model of a prefix cache: blocks
// of 16 tokens, the least recently used are dropped, and tokens that are not cached cost time. Time is simulated, so
// the load of the machine changes nothing. Run it after a build.
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
const dist = '../../apps/gateway/dist/';
const { choose } = require(`${dist}upstream/fleet/backend-choice.js`);
const { Engine, ManagedBackend } = require(`${dist}upstream/fleet/fleet.js`);
const { Breaker } = require(`${dist}upstream/fleet/breaker.js`);
const { affinityOf } = require(`${dist}body/affinity.js`);

const { values } = parseArgs({
  options: Object.fromEntries(
    Object.entries({ backends: '4', sessions: '400', concurrency: '64', seed: '1' }).map(([name, standard]) => [
      name,
      { type: 'string', default: standard },
    ]),
  ),
});
const [backends, sessions, concurrency, seed] = ['backends', 'sessions', 'concurrency', 'seed'].map((name) =>
  Number(values[name]),
);

const BLOCK_TOKENS = 16;
/** What the cache of one engine keeps. All conversations together need more than one engine has. */
const CACHE_BLOCKS = 8_000;
const TURNS = 6;
const SYSTEM_TOKENS = 512;
const TURN_TOKENS = 256;
const ANSWER_TOKENS = 128;
/** What one engine does: prompt tokens that are not cached a millisecond, and the time of an output token. */
const PREFILL_PER_MS = 8;
const DECODE_MS = 12;

function randomFrom(state) {
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** A prefix cache: the key of a block is its whole beginning. */
class PrefixCache {
  blocks = new Map();

  /** The tokens of the prompt that are cached. Then all of it is. */
  take(keys) {
    let hits = 0;
    while (hits < keys.length && this.blocks.has(keys[hits])) hits += 1;
    for (const key of keys) {
      this.blocks.delete(key);
      this.blocks.set(key, true);
    }
    while (this.blocks.size > CACHE_BLOCKS) this.blocks.delete(this.blocks.keys().next().value);
    return hits * BLOCK_TOKENS;
  }
}

/** Three system prompts, of which one has most conversations; each turn sends all that was said before. */
function conversations() {
  const random = randomFrom(seed);
  return Array.from({ length: sessions }, (_, id) => {
    const system = Math.min(2, Math.floor(random() ** 2 * 3));
    const messages = [
      { role: 'system', content: `You are assistant ${system}. `.repeat(20) },
      { role: 'user', content: `Question ${id} of somebody` },
    ];
    const keysOf = (turn) => {
      const tokens = SYSTEM_TOKENS + turn * (TURN_TOKENS + ANSWER_TOKENS) + TURN_TOKENS;
      return Array.from({ length: Math.floor(tokens / BLOCK_TOKENS) }, (__, block) =>
        block * BLOCK_TOKENS < SYSTEM_TOKENS ? `s${system}:${block}` : `c${id}:${block}`,
      );
    };
    return { body: { messages }, keysOf };
  });
}

function play(routing) {
  const random = randomFrom(seed + 1);
  const fleet = Array.from({ length: backends }, (_, n) => {
    const engine = new Engine(`http://gpu-${n}:8000/v1`);
    return new ManagedBackend('m', { weight: 1, maxConcurrency: Infinity }, engine, new Breaker());
  });
  const state = new Map(fleet.map((one) => [one, { cache: new PrefixCache(), busyUntilMs: 0, tokens: 0, calls: 0 }]));
  // Closed loop: `concurrency` conversations at a time, each asks its next turn when the last one is answered.
  const waiting = conversations();
  const due = [];
  const begin = (nowMs) => {
    const conversation = waiting.shift();
    if (conversation) due.push({ nowMs, conversation, turn: 0 });
  };
  for (let n = 0; n < concurrency; n++) begin(n);
  const running = [];
  const waits = [];
  let [hits, prompts, worst] = [0, 0, 0];
  while (due.length > 0 || running.length > 0) {
    due.sort((a, b) => a.nowMs - b.nowMs);
    running.sort((a, b) => a.endMs - b.endMs);
    if (running.length > 0 && (due.length === 0 || running[0].endMs <= due[0].nowMs)) {
      const { one, endMs, conversation, turn } = running.shift();
      one.engine.inFlight -= 1;
      // The person thinks.
      if (turn + 1 < TURNS) due.push({ nowMs: endMs + 500 + random() * 3_000, conversation, turn: turn + 1 });
      else begin(endMs);
      continue;
    }
    const { nowMs, conversation, turn } = due.shift();
    const one = choose(fleet, [], nowMs + 1, affinityOf('chat', conversation.body, routing), random);
    const engine = state.get(one);
    const keys = conversation.keysOf(turn);
    const cached = engine.cache.take(keys);
    const prompt = keys.length * BLOCK_TOKENS;
    const prefillMs = (prompt - cached) / PREFILL_PER_MS;
    engine.busyUntilMs = Math.max(engine.busyUntilMs, nowMs) + prefillMs;
    engine.tokens += prompt - cached;
    engine.calls += 1;
    one.engine.inFlight += 1;
    worst = Math.max(worst, one.engine.inFlight);
    hits += cached;
    prompts += prompt;
    waits.push(engine.busyUntilMs - nowMs);
    running.push({ one, endMs: engine.busyUntilMs + ANSWER_TOKENS * DECODE_MS, conversation, turn });
  }
  const engines = [...state.values()];
  const mean = (numbers) => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
  waits.sort((a, b) => a - b);
  return {
    'hit rate, %': ((100 * hits) / prompts).toFixed(1),
    'calls, most to mean': (
      Math.max(...engines.map(({ calls }) => calls)) / mean(engines.map(({ calls }) => calls))
    ).toFixed(2),
    'most in flight': worst,
    'first token p50, ms': waits[Math.floor(waits.length / 2)].toFixed(0),
    'first token p99, ms': waits[Math.floor(waits.length * 0.99)].toFixed(0),
  };
}

console.log(
  `${backends} backends, ${sessions} conversations of ${TURNS} turns, ${concurrency} at a time, seed ${seed}`,
);
console.table({ load: play('load'), prefix: play('prefix') });
