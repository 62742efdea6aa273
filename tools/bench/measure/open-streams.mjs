// Memory of a stream that stays open. Resident memory alone would hide it: a heap that has served load is larger than
// what is in it. So what is alive (at its lowest, which is just after a collection) is told beside.
import { setTimeout as delay } from 'node:timers/promises';
import { load } from '../load/generate.mjs';
import { OPEN_STREAM } from '../load/scenarios.mjs';
import { rssBytes } from '../machine/usage.mjs';
import { untilQuiet } from './cost.mjs';

const LOOK_EVERY_MS = 250;
/** All of them are open, and their first garbage is collected. */
const STEADY_AFTER = 0.5;

/** @returns {Promise<{ count: number, rssKib: number, liveKib: number, errors: number }>} of a stream */
export async function memoryPerStream(form, { count, seconds }) {
  await untilQuiet(form.parts, form.idle);
  const before = await steadyMemory(form, (seconds * 1_000) / 4);
  const running = load({
    url: `${form.url}/chat/completions`,
    headers: form.headers,
    body: OPEN_STREAM,
    connections: count,
    seconds,
    cut: true,
  });
  await delay(seconds * STEADY_AFTER * 1_000);
  const open = await steadyMemory(form, (seconds * (1 - STEADY_AFTER) * 1_000) / 2);
  const { errors, chunks } = await running;
  if (chunks < count) throw new Error(`of ${count} streams not all began: ${chunks} chunks, ${errors} errors`);
  const kib = (name) => (open[name] - before[name]) / count / 1_024;
  return { count, rssKib: kib('rss'), liveKib: kib('live'), errors };
}

/** The middle of resident memory, and the lowest of what is alive, in some time. */
async function steadyMemory(form, ms) {
  const until = performance.now() + ms;
  const rss = [];
  const live = [];
  while (performance.now() < until) {
    rss.push(rssBytes(form.parts[form.measured]));
    live.push(await liveBytes(form.metricsUrl));
    await delay(LOOK_EVERY_MS);
  }
  return { rss: rss.sort((a, b) => a - b)[rss.length >> 1], live: Math.min(...live) };
}

async function liveBytes(metricsUrl) {
  const page = await (await fetch(metricsUrl)).text();
  const metric = (name) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(page)?.[1] ?? NaN);
  return metric('nodejs_heap_size_used_bytes') + metric('nodejs_external_memory_bytes');
}
