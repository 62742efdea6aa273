import { type Manifest, podOf, variables } from './manifests';
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
