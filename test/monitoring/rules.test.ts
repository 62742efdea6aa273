import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { alerts, metricOf, MONITORING, panelQueries, recordings, ROOT, seriesIn } from './files';

const RUNBOOKS = 'docs/operating/runbooks';
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('alerts and dashboards', () => {
  it('query only metrics that exist, and series that a rule records', () => {
    const documented = textOf('docs/operating/metrics.md');
    const recorded = new Set(recordings().map(({ record }) => record));
    const queried = [...alerts(), ...recordings(), ...panelQueries()].flatMap(({ expr }) => seriesIn(expr));
    expect(queried.length).toBeGreaterThan(100);
    const unknown = queried.filter(
      (series) =>
        series.startsWith('tollgate') && !recorded.has(series) && !documented.includes(`\`${metricOf(series)}\``),
    );
    expect(unknown).toEqual([]);
  });

  it('use only labels that the metrics have', () => {
    const rows = textOf('docs/operating/metrics.md').matchAll(/^\| `(\w+)` +\| \w+ +\| ([^|]*)\|/gm);
    const labels = new Map([...rows].map(([, name, text]) => [name!, [...text!.matchAll(/\w+/g)].map(([one]) => one)]));
    const unknown = [...alerts(), ...recordings(), ...panelQueries()].flatMap(({ expr }) => {
      const known = new Set([
        'namespace',
        'instance',
        'le',
        ...seriesIn(expr).flatMap((name) => labels.get(metricOf(name)) ?? []),
      ]);
      const used = [...expr.matchAll(/(\w+)(?:=~|!=|=)"|\bby \(([^)]*)\)/g)];
      return used
        .flatMap(([, label, by]) => (label === undefined ? by!.split(/, */).filter((each) => each !== '') : [label]))
        .filter((label) => !known.has(label))
        .map((label) => `${label} in ${expr}`);
    });
    expect(unknown).toEqual([]);
  });

  it('show every metric that says how the service fails or what it costs', () => {
    const shown = new Set([...alerts(), ...panelQueries()].flatMap(({ expr }) => seriesIn(expr).map(metricOf)));
    const all = [...textOf('docs/operating/metrics.md').matchAll(/^\| `(tollgate_\w+)`/gm)].map(([, name]) => name!);
    // Metrics that nobody needs to look at every day.
    const left = [
      'tollgate_billing_invoices_total',
      'tollgate_billing_tenant_postings_total',
      'tollgate_backend_samples_total',
      'tollgate_former_secret_requests_total',
      'tollgate_idempotent_answers_not_kept_total',
      'tollgate_metering_dropped_months_total',
      'tollgate_overrun_requests_total',
      'tollgate_refusals_not_kept_total',
      'tollgate_uncounted_refusals_total',
    ];
    expect(all.filter((name) => !shown.has(name)).sort()).toEqual([...left].sort());
  });
});

describe('each alert', () => {
  const pages = readdirSync(join(ROOT, RUNBOOKS)).filter((file) => file !== 'README.md');

  it('has a runbook of its name, and each runbook an alert', () => {
    expect(pages.sort()).toEqual(
      alerts()
        .map(({ alert }) => `${alert}.md`)
        .sort(),
    );
  });

  it.each(alerts())('$alert: its runbook quotes it and says what to do', ({ alert, expr, labels, annotations }) => {
    expect(annotations.runbook).toBe(`${RUNBOOKS}/${alert}.md`);
    const page = textOf(annotations.runbook);
    expect(page).toMatch(new RegExp(`^# ${alert}\n\nSeverity: ${labels.severity}\\.`));
    const [, quoted, rest] = /```promql\n([^]*?)```\n([^]*)/.exec(page)!;
    expect(quoted!.split(/\s+/).join(' ').trim()).toBe(expr.split(/\s+/).join(' ').trim());
    expect(rest!.trim().length).toBeGreaterThan(100);
    expect(textOf(`${RUNBOOKS}/README.md`)).toContain(`[${alert}](${alert}.md)`);
  });

  it('fires in a unit test, and does not while all is well', () => {
    interface UnitTest {
      alert_rule_test: { alertname: string; exp_alerts: unknown[] }[];
    }
    const { tests } = parse(readFileSync(join(MONITORING, 'alerts.test.yaml'), 'utf8')) as { tests: UnitTest[] };
    const tested = (fires: boolean) => {
      const found = tests
        .flatMap((test) => test.alert_rule_test)
        .filter(({ exp_alerts }) => exp_alerts.length > 0 === fires)
        .map(({ alertname }) => alertname);
      return [...new Set(found)].sort();
    };
    const names = alerts()
      .map(({ alert }) => alert)
      .sort();
    expect(tested(true)).toEqual(names);
    expect(tested(false)).toEqual(names);
  });
});
