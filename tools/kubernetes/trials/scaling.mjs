// Autoscaling: the gateway on CPU, metering on the lag of its consumer group.
import { join } from 'node:path';
import { kubectl } from '../cluster.mjs';
import { installLagMetric, LAG_METRIC, lagOf, READERS, removeLagMetric } from './lag-metric.mjs';
import { podsOf, secondsSince, underLoad, until, upgrade } from './release.mjs';

const MOST_PODS = 3;
/** The autoscaler looks every 15 s, and metrics of CPU are up to 30 s old. */
const GROW_TIMEOUT_MS = 300_000;
/** A pod that is removed lets its streams end. */
const SHRINK_TIMEOUT_MS = 600_000;
/** Enough for several pods, at `LAG_PER_POD`. */
const BACKLOG = 300;
const LAG_PER_POD = 50;
const BACKLOG_TIMEOUT_MS = 300_000;

const scaling = (service, values) =>
  Object.entries({ enabled: true, minReplicas: 1, maxReplicas: MOST_PODS, ...values }).flatMap(([name, value]) => [
    '--set',
    `${service}.autoscaling.${name}=${value}`,
  ]);
/** Shrinks soon, so that the trial ends soon. */
const SOON = ['--set', 'scaleDown.afterSeconds=20,scaleDown.periodSeconds=15'];

const isReady = ({ status }) => status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
const readyPods = async (release, service) => (await podsOf(release, [service])).filter(isReady).length;

/** Plain requests make the gateway grow from 1 to 3 pods. Without them it shrinks to 1, and no stream is cut. */
export async function gatewayScales(release) {
  await upgrade(release, [...scaling('gateway', { cpuPercent: 70 }), ...SOON]);
  await until('A rest with 1 gateway', SHRINK_TIMEOUT_MS, async () => (await readyPods(release, 'gateway')) === 1);
  return underLoad(
    release,
    async (load) => {
      await until('Growth to 3 gateways', GROW_TIMEOUT_MS, async () => (await readyPods(release, 'gateway')) === 3);
      const grownSeconds = secondsSince(load.startedMs);
      load.stopPlain();
      const quietMs = Date.now();
      await until(
        'Shrinking to 1 gateway',
        SHRINK_TIMEOUT_MS,
        async () => (await podsOf(release, ['gateway'])).length === 1,
      );
      return { grownSeconds, shrunkSeconds: secondsSince(quietMs) };
    },
    { plain: 24, streams: 6 },
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
    const deployment = ['-n', release.namespace, 'scale', `deployment/${release.release}-metering`];
    return await underLoad(
      release,
      async (load) => {
        await kubectl([...deployment, '--replicas=0']);
        await load.answers(BACKLOG * ANSWERS_PER_RECORD);
        await kubectl([...deployment, '--replicas=1']);
        const startedMs = Date.now();
        let backlog = 0;
        await until('Growth of metering', GROW_TIMEOUT_MS, async () => {
          backlog = Math.max(backlog, (await lagOf(release)) ?? 0);
          return (await readyPods(release, 'metering')) > 1;
        });
        const grownSeconds = secondsSince(startedMs);
        await until('An empty backlog', BACKLOG_TIMEOUT_MS, async () => (await lagOf(release)) <= LAG_PER_POD);
        return { backlog, grownSeconds, drainedSeconds: secondsSince(startedMs) };
      },
      { plain: 12, streams: 2 },
    );
  } finally {
    await removeLagMetric(release);
  }
}
/** A record of Kafka carries the events of about that many requests at this load. */
const ANSWERS_PER_RECORD = 8;
