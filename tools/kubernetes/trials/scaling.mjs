// Autoscaling: the gateway on CPU, metering on the lag of its consumer group.
import { join } from 'node:path';
import { SetupError } from '../../setup/prepare.mjs';
import { kubectl } from '../cluster.mjs';
import { installLagMetric, LAG_METRIC, lagOf, READERS, removeLagMetric } from './lag-metric.mjs';
import { podsOf, readyPods, secondsSince, underLoad, until, upgrade } from './release.mjs';

const MOST_PODS = 3;
/** The autoscaler looks every 15 s, and metrics of CPU are up to 30 s old. */
const GROW_TIMEOUT_MS = 300_000;
/** A pod that is removed lets its streams end. */
const SHRINK_TIMEOUT_MS = 600_000;
/** The load of a gateway's pods: more than six streams need, and less than many clients of plain requests. */
const CPU_PERCENT = 150;
const MORE_CLIENTS = 12;
const MOST_CLIENTS = 120;
const MORE_CLIENTS_EVERY_MS = 10_000;
const LAG_PER_POD = 50;
/** Answers while nothing consumes. A record of Kafka carries the events of about eight requests at this load. */
const FIRST_ANSWERS = 2_400;
const MOST_ANSWERS = 40_000;
const BACKLOG_TIMEOUT_MS = 300_000;

const scaling = (service, values) =>
  Object.entries({ enabled: true, minReplicas: 1, maxReplicas: MOST_PODS, ...values }).flatMap(([name, value]) => [
    '--set',
    `${service}.autoscaling.${name}=${value}`,
  ]);
/** Shrinks soon, so that the trial ends soon. */
const SOON = ['--set', 'scaleDown.afterSeconds=20,scaleDown.periodSeconds=15'];

/** Plain requests make the gateway grow from 1 to 3 pods. Without them it shrinks to 1, and no stream is cut. */
export async function gatewayScales(release) {
  await upgrade(release, [...scaling('gateway', { cpuPercent: CPU_PERCENT }), ...SOON]);
  const pods = () => readyPods(release, 'gateway');
  await until('A rest with 1 gateway', SHRINK_TIMEOUT_MS, async () => (await pods()) === 1);
  const clients = { plain: 24, streams: 6 };
  return underLoad(
    release,
    async (load) => {
      let addedMs = Date.now();
      await until('Growth to 3 gateways', GROW_TIMEOUT_MS, async () => {
        if ((await pods()) === MOST_PODS) return true;
        if (Date.now() > addedMs + MORE_CLIENTS_EVERY_MS && clients.plain < MOST_CLIENTS) {
          load.addPlain(MORE_CLIENTS);
          clients.plain += MORE_CLIENTS;
          addedMs = Date.now();
        }
        return false;
      });
      const grownSeconds = secondsSince(load.startedMs);
      load.stopPlain();
      const quietMs = Date.now();
      await until(
        'Shrinking to 1 gateway',
        SHRINK_TIMEOUT_MS,
        async () => (await podsOf(release, ['gateway'])).length === 1,
      );
      return { clients: clients.plain, grownSeconds, shrunkSeconds: secondsSince(quietMs) };
    },
    { ...clients },
  );
}

/** A backlog makes metering grow, and it is drained. */
export async function meteringScales(release) {
  await installLagMetric(release, join(release.directory, 'lag-metric'));
  try {
    // Slow, so that the backlog is not gone before the autoscaler looks.
    const resources = { requests: { cpu: '100m', memory: '192Mi' }, limits: { cpu: '200m', memory: '512Mi' } };
    await upgrade(release, [
      ...scaling('metering', { cpuPercent: 1_000, lagMetric: LAG_METRIC, lagPerPod: LAG_PER_POD }),
      ...SOON,
      ...['--set-json', `metering.resources=${JSON.stringify(resources)}`],
      ...['--set-json', `networkPolicy.monitoring=${JSON.stringify(READERS)}`],
    ]);
    const scaleTo = (pods) =>
      kubectl(['-n', release.namespace, 'scale', `deployment/${release.release}-metering`, `--replicas=${pods}`]);
    return await underLoad(
      release,
      async (load) => {
        // Twice as much each time, until the backlog lasts longer than the autoscaler needs on this machine.
        for (let answers = FIRST_ANSWERS; ; answers *= 2) {
          if (answers > MOST_ANSWERS) throw new SetupError('Metering drained every backlog before it grew.');
          await scaleTo(0);
          await load.answers(answers);
          await scaleTo(1);
          const startedMs = Date.now();
          const backlog = await backlogOfGrowth(release);
          if (backlog === null) continue;
          const grownSeconds = secondsSince(startedMs);
          await drainedTo(release, LAG_PER_POD);
          return { answers, backlog, grownSeconds, drainedSeconds: secondsSince(startedMs) };
        }
      },
      { plain: 12, streams: 2 },
    );
  } finally {
    await removeLagMetric(release);
  }
}

/** Waits until metering has grown, and returns the largest lag seen until then. Null: it was drained before. */
async function backlogOfGrowth(release) {
  let backlog = 0;
  let isDrained = false;
  await until('Growth of metering, or an empty backlog', GROW_TIMEOUT_MS, async () => {
    const lag = await lagOf(release);
    isDrained = backlog > 0 && lag === 0;
    backlog = Math.max(backlog, lag ?? 0);
    return isDrained || (await readyPods(release, 'metering')) > 1;
  });
  return isDrained || backlog <= LAG_PER_POD ? null : backlog;
}

/** Waits until the lag is at most `most`, twice in a row. */
async function drainedTo(release, most) {
  let times = 0;
  await until('An empty backlog', BACKLOG_TIMEOUT_MS, async () => {
    const lag = await lagOf(release);
    times = lag !== null && lag <= most ? times + 1 : 0;
    return times === 2;
  });
}
