import { onlyOf, rendered } from './rendered';

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
});
