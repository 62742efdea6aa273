import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Manifest, podOf, type PodSpec, ROOT, variables } from './manifests';
import { onlyOf, rendered } from './rendered';

const envOf = (objects: readonly Manifest[], component: string, kind = 'Deployment') =>
  variables(podOf(onlyOf(objects, kind, component))!.containers[0]!);

describe('env', () => {
  it('passes a number on in digits', () => {
    const objects = rendered({ gateway: { env: { A_NUMBER: 10_485_760, A_SHARE: 0.5, A_FLAG: true } } });
    const expected = { A_NUMBER: '10485760', A_SHARE: '0.5', A_FLAG: 'true' };
    expect(envOf(objects, 'gateway')).toMatchObject(expected);
    expect(envOf(objects, 'check-config', 'Job')).toMatchObject(expected);
  });

  it('passes any text on as it is', () => {
    const text = '"quoted", \'too\', $HOME, {{ .Values }}, C:\\n\nsecond line: # é';
    expect(envOf(rendered({ billing: { env: { A: text } } }), 'billing')).toMatchObject({ A: text });
  });

  it.each([
    ['gateway', 'TOLLGATE_DRAIN_SECONDS', 5],
    ['metering', 'DATABASE_URL_FILE', '/etc/other'],
    // A service prefers it to the file of the Secret.
    ['console', 'TOLLGATE_CONSOLE_SECRET', 'secret'],
  ])('of %s is refused with %s, which the chart sets', (service, name, value) => {
    expect(() => rendered({ [service]: { env: { [name]: value } } })).toThrow(
      `${service}.env.${name}: the chart sets it`,
    );
  });

  it('replaces the options of Node and the proxies, and a container has each once', () => {
    const changed = { NODE_OPTIONS: '--max-old-space-size=512', TOLLGATE_TRUSTED_PROXIES: '192.0.2.0/24' };
    const container = podOf(onlyOf(rendered({ console: { env: changed } }), 'Deployment', 'console'))!.containers[0]!;
    expect(variables(container)).toMatchObject(changed);
    const names = container.env!.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });
});

describe('KEDA', () => {
  const scaled = (values: object) =>
    rendered({ billing: { autoscaling: { enabled: true, keda: true, lagPerPod: 2_000_000 } }, ...values });
  const triggerOf = (objects: readonly Manifest[]) =>
    (
      onlyOf(objects, 'ScaledObject', 'billing').spec['triggers'] as { metadata: object; authenticationRef?: object }[]
    )[1]!;

  it('gets the lag in digits', () => {
    expect(triggerOf(scaled({})).metadata).toMatchObject({ lagThreshold: '2000000' });
  });

  it('gets no sign-in if brokers want none', () => {
    const objects = scaled({ kafka: { saslMechanism: '' } });
    expect(objects.filter(({ kind }) => kind === 'TriggerAuthentication')).toEqual([]);
    expect(triggerOf(objects)).not.toHaveProperty('authenticationRef');
  });

  it.each([
    ['password', {}, [{ parameter: 'password' }]],
    ['authorities', { kafka: { saslMechanism: '' }, secrets: { ca: 'authorities' } }, [{ parameter: 'ca' }]],
  ])('gets the %s that brokers want', (_, values, secrets) => {
    const objects = scaled(values);
    expect(onlyOf(objects, 'TriggerAuthentication', 'billing').spec['secretTargetRef']).toMatchObject(secrets);
    expect(triggerOf(objects).authenticationRef).toEqual({ name: 'tollgate-billing' });
  });
});

describe('policies', () => {
  const servers = ['backends', 'postgres', 'redis', 'kafka', 'tracing', 'console'];

  it.each([
    ['an empty list', []],
    ['null', null],
  ])('open no port of servers whose ports are %s, because a rule without ports opens all', (_, ports) => {
    const objects = rendered({
      networkPolicy: Object.fromEntries(servers.map((server) => [server, { ports }])),
      tracing: { url: 'http://collector:4318' },
    });
    const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
    const rules = policies.flatMap(({ spec }) => (spec['egress'] ?? []) as { ports?: object[] | null }[]);
    expect(rules.length).toBeGreaterThan(0);
    for (const rule of rules) expect(rule.ports ?? []).not.toEqual([]);
    expect(onlyOf(objects, 'NetworkPolicy', 'billing').spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] });
  });

  const dnsPorts = (networkPolicy: object) =>
    (
      onlyOf(rendered({ networkPolicy }), 'NetworkPolicy', 'deny').spec['egress'] as {
        ports: { port: number; protocol: string }[];
      }[]
    ).flatMap(({ ports }) => ports.map(({ port, protocol }) => `${protocol} ${port}`));

  it("allow DNS at its port, and at that of OpenShift's pods, or at the ports of the values", () => {
    expect(dnsPorts({}).sort()).toEqual(['TCP 53', 'TCP 5353', 'UDP 53', 'UDP 5353']);
    expect(dnsPorts({ dnsPorts: [53] }).sort()).toEqual(['TCP 53', 'UDP 53']);
    // A rule without ports would open all.
    expect(() => rendered({ networkPolicy: { dnsPorts: [] } })).toThrow('dnsPorts');
  });

  it('are required to let Prometheus in if there is a PodMonitor', () => {
    const monitoring = { podMonitor: true };
    expect(() => rendered({ monitoring })).toThrow('networkPolicy.monitoring is required with monitoring.podMonitor');
    for (const networkPolicy of [{ enabled: false }, { monitoring: [{ namespaceSelector: {} }] }])
      expect(onlyOf(rendered({ monitoring, networkPolicy }), 'PodMonitor', 'metrics')).toBeDefined();
  });
});

describe('names', () => {
  it('are text, also where YAML would read a number', () => {
    for (const { metadata, spec } of rendered({ fullnameOverride: 'tollgate' }, '123')) {
      expect(metadata.labels['app.kubernetes.io/instance']).toBe('123');
      expect(JSON.stringify(spec ?? {})).not.toContain('"app.kubernetes.io/instance":123');
    }
  });

  it.each(['1st', 'a.b'])('refuse the release %s, which is no name of a Service', (release) => {
    expect(() => rendered({}, release)).toThrow('set fullnameOverride');
  });
});

it('annotations of the Ingress replace those of the chart, and keep the others', () => {
  const size = 'nginx.ingress.kubernetes.io/proxy-body-size';
  const ingress = { enabled: true, host: 'api.example.com', annotations: { [size]: '65m', other: 'a' } };
  const { annotations } = onlyOf(rendered({ ingress }), 'Ingress', 'gateway').metadata;
  expect(annotations).toMatchObject({
    [size]: '65m',
    other: 'a',
    'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
  });
});

it('a simulator that need not wait has no preStop, because Kubernetes before 1.33 refuses a sleep of 0', () => {
  const simulator = { enabled: true, preStopSeconds: 0 };
  const [container] = podOf(onlyOf(rendered({ simulator }), 'Deployment', 'simulator'))!.containers;
  expect(container).not.toHaveProperty('lifecycle');
});

it('fewer pods at most than at least are refused before anything changes', () => {
  expect(() => rendered({ gateway: { autoscaling: { enabled: true, minReplicas: 12 } } })).toThrow(
    'gateway.autoscaling.maxReplicas is less than minReplicas',
  );
});

describe('more pods than PostgreSQL has connections for are refused before anything changes', () => {
  const scaled = (service: string, maxReplicas: number) => ({
    [service]: { autoscaling: { enabled: true, maxReplicas } },
  });

  it.each(['auth', 'metering', 'billing', 'console'])('of %s, with and without an autoscaler', (service) => {
    expect(() => rendered(scaled(service, 16))).toThrow(`${service}.autoscaling.maxReplicas must be at most 15`);
    expect(() => rendered({ [service]: { replicas: 16 } })).toThrow(`${service}.replicas must be at most 15`);
  });

  it('but not of gateways, which do not use it, nor with roles of your own', () => {
    const objects = rendered({ ...scaled('gateway', 50), auth: { replicas: 15 } });
    expect(onlyOf(objects, 'HorizontalPodAutoscaler', 'gateway').spec['maxReplicas']).toBe(50);
    const own = rendered({ ...scaled('billing', 16), jobs: { roles: { enabled: false } } });
    expect(onlyOf(own, 'HorizontalPodAutoscaler', 'billing').spec['maxReplicas']).toBe(16);
  });
});

describe('a value that is a map', () => {
  interface Schema {
    properties?: Record<string, Schema>;
  }
  const chart = (file: string) => readFileSync(join(ROOT, 'deploy/chart', file), 'utf8');
  /** The paths of the maps with known values, by their depth. */
  function mapsOf({ properties = {} }: Schema, path: string[] = []): string[][] {
    return Object.entries(properties)
      .filter(([, { properties: inner }]) => inner !== undefined)
      .flatMap(([name, inner]) => [[...path, name], ...mapsOf(inner, [...path, name])]);
  }
  const maps = mapsOf(JSON.parse(chart('values.schema.json')) as Schema);
  const nulled = (paths: string[][]) =>
    paths.reduce<Record<string, object>>((values, path) => {
      let at = values as Record<string, unknown>;
      for (const name of path.slice(0, -1)) at = (at[name] ??= {}) as Record<string, unknown>;
      at[path.at(-1)!] = null;
      return values;
    }, {});

  it.each([1, 2])('is refused by name if it is null, at depth %i', (depth) => {
    const wanted = maps.filter(({ length }) => length === depth);
    expect(wanted.length).toBeGreaterThan(0);
    let refusal = '';
    try {
      rendered(nulled(wanted.filter(([first]) => first !== 'kafka' || depth > 1)));
    } catch (error) {
      refusal = String((error as { stderr?: string }).stderr ?? error);
    }
    expect(refusal).not.toContain('nil pointer');
    for (const path of wanted.filter(([first]) => first !== 'kafka' || depth > 1))
      expect(refusal).toMatch(new RegExp(`\\b${path.at(-1)}\\b`));
  });

  it('is empty if it is null and has no known values', () => {
    const values = parse(chart('values.yaml')) as Record<string, Record<string, unknown>>;
    const open = (map: Record<string, unknown>, path: string[] = []): string[][] =>
      Object.entries(map).flatMap(([name, value]) => {
        if (value === null || typeof value !== 'object' || Array.isArray(value)) return [];
        const here = [...path, name];
        // Without the security context of the chart, our pods would run as root.
        if (name === 'podSecurityContext') return [];
        return maps.some((known) => known.join('.') === here.join('.'))
          ? open(value as Record<string, unknown>, here)
          : [here];
      });
    const paths = open(values);
    expect(paths.length).toBeGreaterThan(5);
    expect(rendered(nulled(paths)).length).toBeGreaterThan(20);
  });
});

describe('openshift', () => {
  it.each([
    ['with the jobs as hooks', {}],
    ['with the stores of a trial', { devStores: { enabled: true }, jobs: { hooks: false } }],
  ])('leaves the users and groups of all pods to the cluster, %s', (_, values) => {
    const given = (openshift: boolean) =>
      rendered({ simulator: { enabled: true }, ...values, openshift }).flatMap((each) => podOf(each) ?? []);
    const numbers = ['runAsUser', 'runAsGroup', 'fsGroup'];
    const withNumbers = ({ securityContext }: PodSpec) => numbers.some((name) => name in securityContext);
    expect(given(false).filter(withNumbers)).toHaveLength(given(false).length);
    expect(given(true).filter(withNumbers)).toEqual([]);
    for (const { securityContext } of given(true))
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  });
});

describe('image.digests', () => {
  const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
  const IMAGES = ['gateway', 'auth', 'metering', 'billing', 'console', 'tools', 'simulator'];
  const imagesOf = (objects: readonly Manifest[]) =>
    objects.flatMap((each) => podOf(each)?.containers.map(({ image }) => image) ?? []);

  it('pins each image of ours', () => {
    const digests = Object.fromEntries(IMAGES.map((name) => [name, digest]));
    const objects = rendered({ simulator: { enabled: true }, image: { repository: 'registry/tollgate', digests } });
    const ours = imagesOf(objects).filter((image) => image.startsWith('registry/'));
    expect(new Set(ours)).toEqual(new Set(IMAGES.map((name) => `registry/tollgate/${name}@${digest}`)));
  });

  it('leaves the other images to the tag', () => {
    const images = imagesOf(rendered({ image: { tag: 'v1', digests: { auth: digest } } }));
    expect(images).toContain(`tollgate/auth@${digest}`);
    expect(images).toContain('tollgate/gateway:v1');
  });

  it.each([
    ['an image that is not ours', { gatway: digest }],
    ['a text that is no digest', { gateway: 'latest' }],
  ])('refuses %s', (_, digests) => {
    expect(() => rendered({ image: { digests } })).toThrow('digests');
  });
});

it('a change from an autoscaler to KEDA and back is not refused by KEDA, which knows no owner of the old one', () => {
  const scaled = rendered({ billing: { autoscaling: { enabled: true } }, auth: { autoscaling: { enabled: true } } });
  expect(onlyOf(scaled, 'HorizontalPodAutoscaler', 'billing').metadata.annotations).toEqual({
    'validations.keda.sh/hpa-ownership': 'false',
  });
  expect(onlyOf(scaled, 'HorizontalPodAutoscaler', 'auth').metadata.annotations).toBeUndefined();
});

describe('the job roles verifies PostgreSQL', () => {
  const rootOf = (sslMode: string, ca: string) =>
    envOf(rendered({ postgres: { host: 'postgres', sslMode }, secrets: { ca } }), 'roles', 'Job')['PGSSLROOTCERT'];

  it('by the authorities of the values, or by those of its image', () => {
    expect(rootOf('verify-full', 'authorities')).toBe('/etc/tollgate/ca/ca.crt');
    // Without this word, psql wants a file in the home of its user.
    expect(rootOf('verify-full', '')).toBe('system');
    expect(rootOf('prefer', '')).toBeUndefined();
  });

  it('by no authorities of the image if any of their servers would do, which psql refuses', () => {
    expect(() => rootOf('verify-ca', '')).toThrow('secrets.ca is required for postgres.sslMode verify-ca');
  });
});
