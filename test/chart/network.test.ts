import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  componentIn,
  componentOf,
  GOLDEN,
  manifests,
  pods,
  ROOT,
  variables,
  type Golden,
  type Manifest,
} from './manifests';

interface Peer {
  podSelector?: { matchLabels: Record<string, string> };
}
interface Rule {
  ports: { port: number | string }[];
  from?: Peer[];
  to?: Peer[];
}
interface Policy {
  podSelector: { matchLabels: Record<string, string> };
  ingress?: Rule[];
  egress?: Rule[];
}

const policies = (name: Golden = 'dev') =>
  manifests(name)
    .filter(({ kind }) => kind === 'NetworkPolicy')
    .map(({ spec }) => spec as unknown as Policy);
const PORTS: Record<string, number> = { public: 8080, operator: 8081, health: 9090, http: 9000, console: 8082 };
const numberOf = (port: number | string) => (typeof port === 'number' ? port : PORTS[port]!);

/** "from > to:port" of every rule between two components. */
function edges(direction: 'from' | 'to', name?: Golden): string[] {
  return policies(name).flatMap(({ podSelector, ingress = [], egress = [] }) => {
    const own = componentIn(podSelector)!;
    return (direction === 'from' ? ingress : egress).flatMap((rule) =>
      (rule[direction] ?? []).flatMap((peer) => {
        const other = peer.podSelector && componentIn(peer.podSelector);
        if (other === undefined) return [];
        const [source, target] = direction === 'from' ? [other, own] : [own, other];
        return rule.ports.map(({ port }) => `${source} > ${target}:${numberOf(port)}`);
      }),
    );
  });
}

it('one policy denies every pod of the release everything but DNS', () => {
  const [all, ...more] = policies().filter(({ podSelector }) => componentIn(podSelector) === undefined);
  expect(more).toEqual([]);
  expect(all!.podSelector.matchLabels).toEqual({
    'app.kubernetes.io/name': 'tollgate',
    'app.kubernetes.io/instance': 'tollgate',
  });
  expect(all).toMatchObject({ policyTypes: ['Ingress', 'Egress'] });
  expect(all!.egress!.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([53, 53, 5353, 5353]);
});

it('every pod carries the labels that the policies select by', () => {
  for (const { manifest, component } of pods('dev')) {
    const labels =
      manifest.kind === 'Pod'
        ? manifest.metadata.labels
        : (manifest.spec['template'] as { metadata: { labels: Record<string, string> } }).metadata.labels;
    expect(labels).toMatchObject({
      'app.kubernetes.io/name': 'tollgate',
      'app.kubernetes.io/instance': 'tollgate',
      'app.kubernetes.io/component': component,
    });
  }
});

/** "component:port" of every rule that lets everybody in. */
const open = (name: Golden) =>
  policies(name).flatMap(({ podSelector, ingress = [] }) =>
    ingress
      .filter(({ from }) => from === undefined)
      .flatMap(({ ports }) => ports.map(({ port }) => `${componentIn(podSelector)}:${numberOf(port)}`)),
  );

it.each(GOLDEN)('what may leave for a pod may also arrive there, with the values %s', (name) => {
  const unguarded = open(name);
  const guarded = edges('to', name).filter((edge) => !unguarded.includes(edge.split(' > ')[1]!));
  expect(guarded.sort()).toEqual(edges('from', name).sort());
});

it('a hook brings its own policy, because those of the former release may deny what it needs', () => {
  const hooks = manifests('ha').filter(({ metadata }) =>
    metadata.annotations?.['helm.sh/hook']?.includes('pre-upgrade'),
  );
  const weights = (wanted: string) =>
    Object.fromEntries(
      hooks
        .filter(({ kind }) => kind === wanted)
        .map((hook) => [componentOf(hook), Number(hook.metadata.annotations!['helm.sh/hook-weight'])]),
    );
  const [ofPolicies, ofJobs] = [weights('NetworkPolicy'), weights('Job')];
  expect(Object.keys(ofJobs)).toContain('migrate-console');
  expect(Object.keys(ofPolicies).sort()).toEqual(Object.keys(ofJobs).sort());
  for (const [component, weight] of Object.entries(ofJobs)) expect(ofPolicies[component]).toBeLessThan(weight);
  // At an install, the policy that lets all pods reach DNS comes after the hooks.
  for (const { spec } of hooks.filter(({ kind }) => kind === 'NetworkPolicy'))
    expect((spec as unknown as Policy).egress!.flatMap(({ ports }) => ports.map(({ port }) => port))).toContain(53);
  // Helm cannot roll back to an object of a release whose name a hook has taken. Without hooks, these are such objects.
  const names = (objects: Manifest[]) =>
    objects.filter(({ kind }) => kind === 'NetworkPolicy').map(({ metadata }) => metadata.name);
  expect(names(manifests('dev')).filter((policy) => names(hooks).includes(policy))).toEqual([]);
});

it('the public port is open to everybody only if the values name no clients', () => {
  expect([open('dev').sort(), open('ha')]).toEqual([['console:8082', 'gateway:8080'], []]);
});

it('a policy lets the services that send traces, and no others, reach the collector of tracing.url', () => {
  const reach = (name: Golden) =>
    manifests(name)
      .filter(({ kind }) => kind === 'NetworkPolicy')
      .flatMap(({ spec }) => {
        const { podSelector, egress = [] } = spec as unknown as Policy;
        const rules = egress.filter(({ ports }) => ports.some(({ port }) => port === 4318));
        return rules.map(({ to }) => ({ component: componentIn(podSelector), to }));
      });
  const monitoring = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
  const services = ['billing', 'gateway', 'metering'];
  expect(reach('ha')).toEqual(services.map((component) => ({ component, to: monitoring })));
  expect(reach('dev')).toEqual([]);
  const traced = pods('ha').filter(({ pod }) => 'TOLLGATE_TRACES_URL' in variables(pod.containers[0]!));
  expect(traced.map(({ component }) => component).sort()).toEqual(services);
  for (const { pod } of traced)
    expect(variables(pod.containers[0]!)).toMatchObject({
      TOLLGATE_TRACES_URL: 'http://collector.monitoring:4318/v1/traces',
      TOLLGATE_TRACES_PERCENT: '1',
      TOLLGATE_TRACES_SLOW_MS: '30000',
    });
});

it('who talks to whom is the table of the operating guide', () => {
  const [, section] = readFileSync(join(ROOT, 'docs/operating/kubernetes.md'), 'utf8').split(
    '\n## Who talks to whom\n',
  );
  const rows = section!.split('\n## ')[0]!.matchAll(/^\| `([a-z-]+)`\s+\| `([a-z-]+)`\s+\| (\d+)/gm);
  // The values for a trial have the stores, and those for high availability have the hooks.
  const all = new Set([...edges('to'), ...edges('to', 'ha')]);
  expect([...rows].map(([, from, to, port]) => `${from} > ${to}:${port}`).sort()).toEqual([...all].sort());
});
