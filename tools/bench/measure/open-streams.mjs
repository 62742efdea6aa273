// Memory of a stream that stays open: what the process has more with all of them, each time after its garbage was
// collected. Without that the room of a heap that has served load would hide it.
import { setTimeout as delay } from 'node:timers/promises';
import { load } from '../load/generate.mjs';
import { OPEN_STREAM } from '../load/scenarios.mjs';
import { untilQuiet } from './cost.mjs';

/** The share of the time after which all of them have been open for long. */
const STEADY_AFTER = 0.7;

/** @returns {Promise<{ count: number, rssKib: number, liveKib: number, errors: number }>} of a stream */
export async function memoryPerStream(form, { count, seconds }) {
  await untilQuiet(form.parts, form.idle);
  const before = await form.memory();
  const running = load({
    url: `${form.url}/chat/completions`,
    headers: form.headers,
    body: OPEN_STREAM,
    connections: count,
    seconds,
    cut: true,
  });
  await delay(seconds * STEADY_AFTER * 1_000);
  const open = await form.memory();
  const { errors } = await running;
  const kib = (name) => (open[name] - before[name]) / count / 1_024;
  return { count, rssKib: kib('rss'), liveKib: kib('live'), errors };
}
