// The release that the trials work on: its books, its pods, its settings, and a load on it.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { ROOT, SetupError } from '../../setup/prepare.mjs';
import { CHART, helm, kubectl, nodePortUrl, throughPort } from '../cluster.mjs';
import { Load } from './load.mjs';
import { wrongIn } from './verdict.mjs';

export const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'];
const CREDIT_CENTS = 1_000_000;
/** Before and after a change, so that the load has run without it too. */
const STEADY_MS = 6_000;
const ANSWER_WAIT_MS = 60_000;
const RECONCILE_WAIT_MS = 180_000;
/** For the request that starts a run: it waits 10 s for the end, after what a busy node takes. */
const START_WAIT_MS = 60_000;
const POLL_MS = 3_000;
/** The most things that are named as wrong. */
const MAX_NAMED = 10;
const UPGRADE_TIMEOUT = '10m';
const load = createRequire(import.meta.url);

/**
 * @typedef {{ release: string, namespace: string, values: string[], operatorSecret: string, model: string }} Release
 */

/**
 * Uses the operator API. Does so again while no service answers in time, as on a busy node, and after the connection
 * was lost: it leads to one gateway, which may be about to end. `work` must be safe to repeat.
 */
async function operator({ release, namespace, operatorSecret }, work) {
  const { OperatorClient } = load(join(ROOT, 'apps/cli/dist/index.js'));
  for (const end = Date.now() + ANSWER_WAIT_MS; ; await setTimeout(POLL_MS))
    try {
      return await throughPort(namespace, `${release}-operator`, 8081, (url) =>
        work(new OperatorClient({ url, secret: operatorSecret })),
      );
    } catch (error) {
      if (Date.now() > end || !['unavailable', 'unreachable'].includes(error.code)) throw error;
    }
}

/** A tenant with that credit, and its key. */
export async function customer(release, creditCents = CREDIT_CENTS) {
  // Each by itself, so that only one is repeated. A repeated tenant or key is one more, which is not used.
  const post = async (path, body) => (await operator(release, (client) => client.post(path, body))).data;
  const { id } = await post('/tenants', { name: `trial-${Date.now()}` });
  const made = { tenant: id, creditCents: 0 };
  if (creditCents > 0) await credit(release, made, creditCents);
  return Object.assign(made, { key: (await post(`/tenants/${id}/keys`, { name: 'trial' })).key });
}

/** Gives a customer more credit. */
export async function credit(release, customer, amountCents) {
  const path = `/tenants/${customer.tenant}/credit`;
  await operator(release, (client) => client.post(path, { amountCents, ref: `trial-${customer.creditCents}` }));
  customer.creditCents += amountCents;
}

/** Rejects unless the books agree within a bound: usage is on its way into them for a moment. */
async function reconcile(release) {
  const end = Date.now() + RECONCILE_WAIT_MS;
  for (;;) {
    const { data } = await operator(release, (client) => client.post('/reconcile', {}, START_WAIT_MS));
    let report = data;
    // A run that takes long goes on by itself.
    while (report.state === 'running' && Date.now() < end) {
      await setTimeout(POLL_MS);
      const run = await operator(release, (client) => client.get(`/reconcile/${data.id}`));
      report = run.data.report ?? run.data;
    }
    if (report.ok && report.settledHolds === 0 && report.pendingHolds === 0) return;
    if (Date.now() > end) throw new SetupError(`The books differ: ${JSON.stringify(report)}`);
    await setTimeout(POLL_MS);
  }
}

/**
 * Rejects unless the books agree, no hold is left, and they say of these requests of a customer what they must
 * (`wrongIn`). Returns how many are recorded.
 */
export async function proveBooks(release, { tenant, creditCents }, outcomes) {
  await reconcile(release);
  const usage = await recordedUsage(release, tenant);
  const { data } = await operator(release, (client) => client.get(`/tenants/${tenant}/credit`));
  const wrong = wrongIn(outcomes, usage, { ...data, creditCents });
  if (wrong.length > 0)
    throw new SetupError(`${wrong.length} things are wrong in the books:\n${wrong.slice(0, MAX_NAMED).join('\n')}`);
  return usage.length;
}

async function recordedUsage(release, tenant) {
  const path = `/usage/export?tenantId=${tenant}&from=${yesterday()}&format=ndjson`;
  const lines = await operator(release, async (client) => {
    const exported = new PassThrough();
    const [read] = await Promise.all([text(exported), client.download(path, exported).finally(() => exported.end())]);
    return read;
  });
  const rows = lines.split('\n').filter(Boolean);
  return rows.map((line) => JSON.parse(line));
}

/** A trial may run at midnight. */
const yesterday = () => new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

/** Changes settings of the chart, as arguments of helm, and waits until all pods have them. */
export async function upgrade(release, settings) {
  const args = ['upgrade', release.release, CHART, ...release.values, ...settings];
  await helm(['-n', release.namespace, ...args, '--wait', '--timeout', UPGRADE_TIMEOUT]);
}

/**
 * Runs `change` under load. Rejects if a request failed that may not (`change` may say what the load suffers), or if
 * the books do not say of each request what they must afterwards.
 */
export async function underLoad(release, change, { plain = 4, streams = 6 } = {}) {
  const caller = await customer(release);
  const running = await loadOf(release, caller, { plain, streams });
  let changed, stopped;
  const startedMs = Date.now();
  try {
    await setTimeout(STEADY_MS);
    changed = await change(running);
    changed.changeSeconds = secondsSince(startedMs + STEADY_MS);
    await setTimeout(STEADY_MS);
  } finally {
    stopped = await running.stop();
  }
  const counts = served(stopped);
  const recorded = await proveBooks(release, caller, running.outcomes);
  return { ...counts, recorded, ...changed };
}

/** A load of a customer. */
export const loadOf = async ({ namespace, release, model }, { key }, clients) =>
  new Load({ url: await nodePortUrl(namespace, `${release}-gateway`), key, model, ...clients });

/** The counts of a load that was stopped. Throws if a request failed that may not. */
export function served({ counts, failures }) {
  if (counts.failed === 0) return counts;
  const rest = counts.plain + counts.streams;
  throw new SetupError(`${counts.failed} requests failed, ${rest} did not:\n${failures.join('\n')}`);
}

/** The pods of these services that are not ending. */
export async function podsOf({ namespace, release }, services = SERVICES) {
  const selector = `app.kubernetes.io/instance=${release},app.kubernetes.io/component in (${services.join(',')})`;
  const { items } = JSON.parse(await kubectl(['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json']));
  return items.filter(({ metadata }) => !metadata.deletionTimestamp);
}

const isReady = ({ status }) => status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');

/** The number of ready pods of a service. */
export const readyPods = async (release, service) => (await podsOf(release, [service])).filter(isReady).length;

export const podNames = async (release, services) =>
  (await podsOf(release, services)).map(({ metadata }) => metadata.name);

export const secondsSince = (ms) => Math.round((Date.now() - ms) / 100) / 10;

/** Asks `question` again and again until it answers true. Rejects with `what` after `timeoutMs`. */
export async function until(what, timeoutMs, question) {
  for (const end = Date.now() + timeoutMs; !(await question()); await setTimeout(1_000))
    if (Date.now() > end) throw new SetupError(`${what} did not happen within ${timeoutMs / 1_000} s.`);
}
