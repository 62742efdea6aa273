import { TOPICS } from '@tollgate/contracts';
import { Ajv } from 'ajv';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { componentOf, GOLDEN, manifests, only, pods, ROOT, variables, type Golden } from './manifests';

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const SERVICES = ['gateway', 'auth', 'metering', 'billing'];
/** Settings that are secret. Migrations have a REDIS_URL that leads nowhere. */
const SECRETS = ['KAFKA_PASSWORD', 'DATABASE_URL', 'TOLLGATE_OPERATOR_SECRET', 'TOLLGATE_METRICS_TOKEN', 'PGPASSWORD'];
/** Time that a stop may take after its drain (docs/operating/distributed.md). */
const STOP_SECONDS = 15;

it.each(GOLDEN)('%s: the golden manifests were made from the chart as it is', (name) => {
  const renderer = join(ROOT, 'tools/chart/render.mjs');
  const script = `import('${renderer}').then((chart) => console.log(chart.sourcesHash('${name}')))`;
  const hash = execFileSync(process.execPath, ['--eval', script], { encoding: 'utf8' }).trim();
  const [first] = textOf(`test/chart/golden/${name}.yaml`).split('\n');
  // Otherwise run, with helm: node tools/chart/render.mjs
  expect(first).toBe(`# made from ${hash}`);
});

describe.each(GOLDEN)('%s: the chart', (name) => {
  it('has each object once', () => {
    const names = manifests(name).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names).toEqual([...new Set(names)]);
  });

  it('runs every pod without root, without a token, without links to Services and with a seccomp profile', () => {
    for (const { pod, component } of pods(name))
      expect({ component, ...pod }).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: expect.any(Number),
          seccompProfile: { type: 'RuntimeDefault' },
        },
      });
  });

  it('lets no container gain rights or write to its image, except the broker of trials', () => {
    for (const { pod, component } of pods(name))
      for (const container of pod.containers) {
        expect(container.securityContext).toMatchObject({
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        });
        expect({ component, readOnly: container.securityContext['readOnlyRootFilesystem'] ?? false }).toEqual({
          component,
          readOnly: component !== 'kafka',
        });
      }
  });

  it('limits the memory of every container and the processor of none', () => {
    for (const { pod } of pods(name))
      for (const { resources } of pod.containers) expect(Object.keys(resources.limits ?? {})).toEqual(['memory']);
  });

  it('contains no secret: each is a file from a Secret that exists', () => {
    expect(manifests(name).filter(({ kind }) => kind === 'Secret')).toEqual([]);
    const literal = pods(name).flatMap(({ pod }) => pod.containers.flatMap((each) => Object.keys(variables(each))));
    expect(literal.filter((variable) => SECRETS.includes(variable))).toEqual([]);
  });

  it('sets only settings that exist', () => {
    const settings = textOf('docs/operating/settings.md');
    for (const { pod, component } of pods(name).filter((each) => SERVICES.includes(each.component)))
      for (const variable of Object.keys(variables(pod.containers[0]!)).filter((each) => each !== 'NODE_OPTIONS'))
        expect(
          settings.includes(`\`${variable.replace(/(?<!CA|KEYS|SECRETS)_FILE$/, '')}\``)
            ? ''
            : `${component} ${variable}`,
        ).toBe('');
  });

  it('gives a gateway more time to stop than its lame duck, its longest stream and its last usage take', () => {
    const { pod } = pods(name).find(({ component }) => component === 'gateway')!;
    const { TOLLGATE_LAME_DUCK_SECONDS: lameDuck, TOLLGATE_DRAIN_SECONDS: drain } = variables(pod.containers[0]!);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(Number(lameDuck) + Number(drain) + STOP_SECONDS);
  });

  it('never removes a pod of a service before its successor is ready', () => {
    for (const service of [...SERVICES, 'simulator'].filter((each) => each !== 'simulator' || name === 'dev'))
      expect(only(name, 'Deployment', service).spec['strategy']).toEqual({
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
      });
  });

  it('restarts no pod when its configuration changes', () => {
    for (const { manifest } of pods(name)) expect(JSON.stringify(manifest.spec)).not.toContain('checksum');
  });

  it('opens the operator port to nothing outside the cluster', () => {
    const exposed = manifests(name).filter(({ kind }) => ['Service', 'Ingress', 'HTTPRoute'].includes(kind));
    for (const { kind, spec, metadata } of exposed) {
      if (kind === 'Service' && (spec['type'] ?? 'ClusterIP') === 'ClusterIP') continue;
      expect(`${metadata.name}: ${JSON.stringify(spec)}`).not.toMatch(/operator|8081/);
    }
  });
});

describe('scaling', () => {
  const limits = (name: Golden) =>
    manifests(name).flatMap((each) => {
      const most = (each.spec?.['maxReplicas'] ?? each.spec?.['maxReplicaCount']) as number | undefined;
      return most === undefined ? [] : [{ component: componentOf(each), most }];
    });

  it('never makes more consumers than there are partitions', () => {
    const partitions: Record<string, number> = {
      metering: TOPICS['usage-events'].partitions,
      billing: TOPICS.charges.partitions,
    };
    const found = GOLDEN.flatMap(limits).filter(({ component }) => component in partitions);
    expect(found.length).toBeGreaterThan(2);
    for (const { component, most } of found) expect(most).toBeLessThanOrEqual(partitions[component]!);
  });

  it('leaves the number of pods to what scales them', () => {
    for (const name of GOLDEN)
      for (const { component } of limits(name))
        expect(only(name, 'Deployment', component).spec).not.toHaveProperty('replicas');
  });

  it('reads the lag of the groups that the services consume as', () => {
    for (const [component, topic] of [
      ['metering', 'usage-events'],
      ['billing', 'charges'],
    ] as const) {
      expect(TOPICS[topic].groups).toHaveProperty(component, component);
      const triggers = only('ha', 'ScaledObject', component).spec['triggers'] as { metadata: Record<string, string> }[];
      expect(triggers[1]!.metadata).toMatchObject({
        topic,
        consumerGroup: `${topic}.${component}`,
        sasl: 'scram_sha512',
      });
    }
  });
});

describe('monitoring', () => {
  it('brings the recording rules and the alerts of deploy/monitoring', () => {
    const groups = ['rules', 'alerts'].flatMap(
      (file) => (parse(textOf(`deploy/monitoring/${file}.yaml`)) as { groups: { name: string }[] }).groups,
    );
    expect(only('ha', 'PrometheusRule', 'alerts').spec['groups']).toEqual(groups);
    // The API server refuses two of one name.
    const names = groups.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });

  it('brings each dashboard of deploy/monitoring in a ConfigMap that Grafana finds', () => {
    for (const file of readdirSync(join(ROOT, 'deploy/monitoring/dashboards'))) {
      const config = only('ha', 'ConfigMap', `dashboard-${file.replace('.json', '')}`);
      expect(config.metadata.labels).toMatchObject({ grafana_dashboard: '1' });
      const { data } = config as unknown as { data: Record<string, string> };
      const board = JSON.parse(textOf(`deploy/monitoring/dashboards/${file}`)) as object;
      expect(Object.entries(data).map(([name, text]) => [name, JSON.parse(text)])).toEqual([
        [`tollgate-${file}`, board],
      ]);
    }
  });

  it('is brought by no other values', () => {
    for (const name of ['dev', 'ingress'] as const)
      expect(manifests(name).filter(({ metadata }) => /dashboard|alerts/.test(metadata.name))).toEqual([]);
  });
});

describe('the schema of the values', () => {
  const schema = new Ajv({ strict: false }).compile(JSON.parse(textOf('deploy/chart/values.schema.json')) as object);
  type Values = Record<string, unknown>;
  const defaults = parse(textOf('deploy/chart/values.yaml')) as Values;
  const isMap = (value: unknown): value is Values =>
    value !== null && typeof value === 'object' && !Array.isArray(value);
  /** As Helm does before it asks the schema. */
  const merged = (base: Values, values: Values): Values => {
    const inner = Object.entries(values).map(([name, value]) => {
      const former = base[name];
      return [name, isMap(former) && isMap(value) ? merged(former, value) : value] as const;
    });
    return { ...base, ...Object.fromEntries(inner) };
  };

  it.each([
    'deploy/chart/values.yaml',
    'deploy/chart/values-dev.yaml',
    'deploy/chart/values-ha.yaml',
    'test/chart/values-ingress.yaml',
  ])('accepts %s', (path) => {
    schema(merged(defaults, parse(textOf(path)) as Values));
    expect(schema.errors ?? []).toEqual([]);
  });

  it.each([
    ['an unknown value', { gateway: { replica: 3 } }],
    ['a drain that no gateway accepts', { gateway: { drainSeconds: 3_601 } }],
    ['fewer months of usage than metering accepts', { metering: { usageKeptMonths: 2 } }],
    ['a mechanism that does not exist', { kafka: { saslMechanism: 'SCRAM-SHA-512' } }],
    ['a receiver of traces with a user', { tracing: { url: 'http://user@collector:4318' } }],
    ['brokers without a port', { kafka: { brokers: 'kafka' } }],
    ['brokers of the administrator without a port', { kafka: { admin: { brokers: 'kafka' } } }],
    ['misspelt resources', { gateway: { resources: { limit: { memory: '4Gi' } } } }],
    ['a port that does not exist', { networkPolicy: { postgres: { ports: [0] } } }],
    ['a share of the pods that is no percentage', { billing: { maxUnavailable: 'half' } }],
  ])('refuses %s', (_, values) => expect(schema(merged(defaults, values))).toBe(false));
});
