import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMap, parse, parseDocument, type Pair, type Scalar, type YAMLMap } from 'yaml';
import { only, ROOT } from './manifests';

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const SERVICES = ['gateway', 'auth', 'metering', 'billing'] as const;
type Service = (typeof SERVICES)[number];
/** Any load: what a service needs grows in proportion to it. */
const LOAD = { requestsPerSecond: 1_000, tenants: 1_000 };
const [KIB, MIB] = [1_024, 1_024 * 1_024];

interface Capacity {
  used: Record<Service, number>;
  open: number;
  gatewayCores: number;
}

/** What the capacity model says of the load, from the measured unit costs. An ES module, so in a process of its own. */
function capacity(): Capacity {
  const model = pathToFileURL(join(ROOT, 'tools/capacity/model.mjs')).href;
  const script = `import { capacityOf } from '${model}';
    const costs = ${textOf('tools/capacity/unit-costs.json')};
    const load = capacityOf(${JSON.stringify(LOAD)}, costs);
    console.log(JSON.stringify({ ...load, gatewayCores: costs.gatewayCores }));`;
  return JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8', stdio: 'pipe' }),
  ) as Capacity;
}

const document = parseDocument(textOf('deploy/chart/values.yaml'));
interface Resources {
  requests: { cpu: string; memory: string };
}
const valueOf = (service: Service) =>
  (document.toJS() as Record<Service, { resources: Resources; autoscaling: { cpuPercent: number } }>)[service];
const millicores = (cpu: string) => Number(/^(\d+)m$/.exec(cpu)![1]);
const mebibytes = (memory: string) => Number(/^(\d+)Mi$/.exec(memory)![1]);

/** "carries 1,300 requests/s" of the comment above the resources of a service. */
function claimOf(service: Service): number {
  const map = (document.contents as YAMLMap).get(service) as YAMLMap;
  expect(isMap(map)).toBe(true);
  const { key } = map.items.find(({ key: each }) => (each as Scalar).value === 'resources') as Pair<Scalar>;
  const [, claim] = /carries ([\d,]+) requests\/s/.exec(key.commentBefore ?? '') ?? [];
  return Number(claim?.replaceAll(',', ''));
}

describe('a request of CPU', () => {
  const { used, open, gatewayCores } = capacity();
  /** Requests/s with which a pod is at the target of its autoscaler. */
  const carried = (service: Service) => {
    const { resources, autoscaling } = valueOf(service);
    const target = (millicores(resources.requests.cpu) * autoscaling.cpuPercent) / 100_000;
    const ofRequests = target - (service === 'gateway' ? gatewayCores : 0);
    return ofRequests / (used[service] / LOAD.requestsPerSecond);
  };

  it.each(SERVICES)('of %s carries what its comment says, and not twice as much', (service) => {
    const claim = claimOf(service);
    expect(claim).toBeLessThanOrEqual(carried(service));
    expect(carried(service)).toBeLessThan(2 * claim);
  });

  it('of the services behind a gateway carries twice its requests, so that a backlog is drained', () => {
    for (const service of SERVICES.filter((each) => each !== 'gateway'))
      expect([service, claimOf(service) >= 2 * claimOf('gateway')]).toEqual([service, true]);
  });

  it('is used up before the target of requests in flight, unless streams are slow', () => {
    const openAtTarget = (open / LOAD.requestsPerSecond) * carried('gateway');
    expect(inFlightTarget()).toBeGreaterThan(openAtTarget);
  });

  it('comes with the memory of the requests in flight', () => {
    const [, kib] = /an open stream takes less than (\d+) KiB of its gateway/.exec(
      textOf('docs/operating/capacity.md'),
    )!;
    const [, seen] = /`TOLLGATE_GATEWAY_MEMORY_MIB`.* (\d+) +\|$/m.exec(textOf('docs/operating/distributed.md'))!;
    const needed = Number(seen) + (inFlightTarget() * Number(kib) * KIB) / MIB;
    expect(mebibytes(valueOf('gateway').resources.requests.memory)).toBeGreaterThan(needed);
  });
});

interface PodsMetric {
  type: string;
  pods?: { metric: { name: string }; target: { averageValue: string } };
}
const inFlight = () =>
  (only('ha', 'HorizontalPodAutoscaler', 'gateway').spec['metrics'] as PodsMetric[]).find(
    ({ type }) => type === 'Pods',
  )!.pods!;
const inFlightTarget = () => Number(inFlight().target.averageValue);

describe('the rule for prometheus-adapter in the operating guide', () => {
  const [, block] = /```yaml\n(rules:\n[\s\S]*?)```/.exec(textOf('docs/operating/kubernetes.md'))!;
  const { rules } = parse(block!) as {
    rules: { custom: { seriesQuery: string; resources: { overrides: object }; metricsQuery: string }[] };
  };
  const [rule, ...more] = rules.custom;

  it('serves the metric of pods that the autoscaler of the gateway asks for', () => {
    expect(more).toEqual([]);
    const { name } = inFlight().metric;
    // Without a name of its own, a metric has the name of its series.
    expect(rule).toEqual({
      seriesQuery: `${name}{namespace!="",pod!=""}`,
      resources: { overrides: { namespace: { resource: 'namespace' }, pod: { resource: 'pod' } } },
      metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)',
    });
    expect(textOf('docs/operating/metrics.md')).toContain(`| \`${name}\``);
  });

  it('has its labels from the PodMonitor of the same values', () => {
    expect(only('ha', 'PodMonitor', 'metrics').spec['podMetricsEndpoints']).toHaveLength(1);
  });
});
