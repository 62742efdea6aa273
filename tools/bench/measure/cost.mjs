// What a piece of load costs each part, until the parts are quiet again: what they put off belongs to it.
import { setTimeout as delay } from 'node:timers/promises';
import { cpus } from 'node:os';
import { load } from '../load/generate.mjs';
import { MEASURED, REST } from '../machine/processes.mjs';
import { busySeconds, cpuSeconds } from '../machine/usage.mjs';

const QUIET_WINDOW_MS = 500;
/** The share of a core above what the parts use when idle. */
const QUIET_SHARE = 0.1;
const QUIET_LIMIT_MS = 6_000;

/** What this process has started, and servers that are not its children. */
const ours = new Set([process.pid]);

/** Their CPU is not that of other programs, whatever is measured. */
export const countAsOurs = (parts) => all(parts).forEach((pid) => ours.add(pid));

const all = (parts) => Object.values(parts).flat();
const usedBy = (parts) => Object.fromEntries(Object.entries(parts).map(([name, pids]) => [name, cpuSeconds(pids)]));
const minus = (after, before) =>
  Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]));

/** Shares of a core that the parts use with nothing to do. @returns {Promise<Record<string, number>>} */
export async function idleShares(parts, seconds) {
  await untilQuiet(parts, {});
  const before = usedBy(parts);
  const began = performance.now();
  await delay(seconds * 1_000);
  const used = minus(usedBy(parts), before);
  const elapsed = (performance.now() - began) / 1_000;
  return Object.fromEntries(Object.entries(used).map(([name, value]) => [name, value / elapsed]));
}

/** Waits until the parts use no more than when idle, and a little; at most 6 s. */
export async function untilQuiet(parts, idle) {
  const idleShare = Object.values(idle).reduce((sum, share) => sum + share, 0);
  const until = performance.now() + QUIET_LIMIT_MS;
  while (performance.now() < until) {
    const before = cpuSeconds(all(parts));
    await delay(QUIET_WINDOW_MS);
    const share = ((cpuSeconds(all(parts)) - before) * 1_000) / QUIET_WINDOW_MS;
    if (share <= idleShare + QUIET_SHARE) return;
  }
}

/**
 * One run of one scenario on one gateway.
 * @param {import('../gateways/yardsticks.mjs').Gateway & { idle?: Record<string, number> }} gateway
 * @param {{ connections: number, body: object, unit: 'request' | 'chunk', spreadMs?: number }} scenario
 * @param {{ seconds: number, ratePerSecond?: number, count?: number }} options  as in load.mjs
 * @returns what load.mjs measured, and `cpuMicros` per unit: of each part, of the backend and of the load; shares of
 *   the cores while the load ran; `foreign`, the share of the machine that nothing of ours used
 */
export async function measure(gateway, backend, scenario, { seconds, ratePerSecond = null, count }) {
  const { connections, body, unit, spreadMs } = scenario;
  const parts = { ...gateway.parts, backend: backend.pids };
  countAsOurs(parts);
  const before = { parts: usedBy(parts), ours: cpuSeconds([...ours]), busy: busySeconds() };
  const coresBefore = [busySeconds(MEASURED), busySeconds(REST)];
  const began = performance.now();
  const result = await load({
    urls: (gateway.urls ?? [gateway.url]).map((url) => `${url}/chat/completions`),
    headers: gateway.headers,
    body,
    connections,
    spreadMs,
    seconds,
    ratePerSecond,
    count,
  });
  const elapsed = (performance.now() - began) / 1_000;
  const busy = [busySeconds(MEASURED), busySeconds(REST)].map((value, i) => (value - coresBefore[i]) / elapsed);
  const foreign = (busySeconds() - before.busy - (cpuSeconds([...ours]) - before.ours)) / elapsed / cpus().length;
  await untilQuiet(gateway.parts, gateway.idle ?? {});
  const units = unit === 'chunk' ? result.chunks : result.requests;
  const used = { ...minus(usedBy(parts), before.parts), load: result.ownCpuSeconds };
  return {
    ...result,
    cpuMicros: Object.fromEntries(Object.entries(used).map(([name, value]) => [name, (value * 1e6) / units])),
    coreShares: { measured: busy[0], rest: busy[1] },
    foreign: Math.max(0, foreign),
  };
}
