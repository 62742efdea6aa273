import { execFileSync } from 'node:child_process';
import { eventually, onceServed } from '@tollgate/testing';
import { complete, createTenant } from '../e2e/fixtures';
import { reconcileReport } from '../e2e/reconcile';
import { useStandalone } from '../e2e/standalone';
import { alerts, metricOf, MONITORING, panelQueries, recordings, seriesIn } from './files';
import { Prometheus } from './prometheus';

const TOKEN = 'the-token-of-this-scraper';
/** Metrics that count only faults or actions that did not occur here. They have no series before the first count. */
const SILENT = [
  'tollgate_backend_drift_ratio',
  'tollgate_backend_queue_length',
  'tollgate_backend_retries_total',
  'tollgate_billing_poisoned_tenants_total',
  'tollgate_config_reloads_total',
  'tollgate_former_secret_requests_total',
  'tollgate_idempotent_requests_total',
  'tollgate_message_keys_reloads_total',
  'tollgate_messages_dead_total',
  'tollgate_messages_failed_batches_total',
  'tollgate_messages_forged_total',
  'tollgate_metering_refused_events_total',
  'tollgate_outbox_refused_total',
  'tollgate_model_fallbacks_left_out_total',
  'tollgate_model_fallbacks_total',
  'tollgate_overlong_answers_total',
  'tollgate_requests_expired_total',
  'tollgate_requests_unreadable_total',
  'tollgate_usage_disbelieved_total',
];
const PATIENT = { timeoutMs: 60_000, everyMs: 500 };

const standalone = useStandalone({ env: { TOLLGATE_METRICS_TOKEN: TOKEN } });
const prometheus = new Prometheus();
const scrape = async () =>
  (await fetch(`${standalone.ready.operatorUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();

beforeAll(async () => {
  await prometheus.start({ url: standalone.ready.operatorUrl, token: TOKEN });
  const { ready } = standalone;
  const [rich, poor, slow] = await Promise.all([
    createTenant(ready, 10_000),
    createTenant(ready, 0),
    createTenant(ready, 10_000, 'slow'),
  ]);
  const messages = [{ role: 'user', content: 'Hello' }];
  const chat = (key: string, body: object = {}) =>
    onceServed(() => complete(ready, key, { messages, max_tokens: 50, ...body }));
  expect((await chat(rich.key)).status).toBe(200);
  expect((await chat(rich.key, { stream: true })).status).toBe(200);
  expect((await chat(poor.key)).code).toBe('credit_exhausted');
  expect((await chat('sk-svc-unknown')).code).toBe('invalid_api_key');
  const failing = { simulator: { faults: [{ kind: 'status', status: 500 }] } };
  expect((await chat(rich.key, failing)).code).toBe('upstream_error');
  const codes = await Promise.all(Array.from({ length: 20 }, async () => (await chat(slow.key)).code));
  expect(codes.some((code) => code?.endsWith('_limit_exceeded'))).toBe(true);
  await reconcileReport(ready);
});
afterAll(() => prometheus.stop());

/** Series that never had a sample, of those in the query. */
async function withoutSeries(expr: string): Promise<string[]> {
  const series = [...new Set(seriesIn(expr))];
  const found = await Promise.all(series.map(async (name) => (await prometheus.query(name)).length > 0));
  return series.filter((_, index) => !found[index]);
}

/** As Grafana would ask: over a window that has all of this test, and for all models and backends. */
const asked = (expr: string) => expr.replaceAll('$__rate_interval', '30m').replaceAll(/\$(model|backend)/g, '.*');

describe('a real Prometheus', () => {
  it('accepts the rules, and the alerts pass their unit tests', () => {
    const run = (...args: string[]) => execFileSync('promtool', args, { cwd: MONITORING, encoding: 'utf8' });
    expect(run('check', 'rules', 'rules.yaml', 'alerts.yaml')).not.toContain('FAILED');
    expect(run('test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
  });

  it('has series of every metric of a running stack, except what never happened', async () => {
    await eventually(async () => {
      const registered = [...(await scrape()).matchAll(/^# TYPE (tollgate_\w+) /gm)].map(([, name]) => name!);
      const series = await prometheus.query('count by (__name__) ({__name__=~"tollgate_.+"})');
      const seen = new Set(series.map(({ metric }) => metricOf(metric['__name__']!)));
      expect(registered.length).toBeGreaterThan(SILENT.length);
      expect(registered.filter((name) => !seen.has(name) && !SILENT.includes(name))).toEqual([]);
    }, PATIENT);
  });

  it.each(panelQueries())('answers the panel $name: $expr', async ({ expr }) => {
    await eventually(async () => {
      const result = await prometheus.query(asked(expr));
      // Nothing but a metric without any series excuses an empty panel.
      if (result.length === 0) {
        const silent = await withoutSeries(expr);
        expect(silent.filter((name) => SILENT.includes(metricOf(name)))).not.toEqual([]);
      }
    }, PATIENT);
  });

  it('evaluates every rule without an error', async () => {
    await eventually(async () => {
      const rules = await prometheus.rules();
      expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
      expect(rules.length).toBe(alerts().length + recordings().length);
    }, PATIENT);
  });

  it.each(alerts())('$alert compares series that exist, or that nothing has ever counted', async ({ expr }) => {
    await eventually(async () => {
      const silent = await withoutSeries(expr);
      expect(silent.filter((name) => !SILENT.includes(metricOf(name)))).toEqual([]);
    }, PATIENT);
  });

  it('shows the same money at each stage, and what reconcile found', async () => {
    await eventually(async () => {
      const [held, settled, charged, gathered, posted] = await Promise.all(
        [
          'tollgate_held_nanos_total',
          'tollgate_settled_nanos_total',
          'tollgate_metering_charged_nanos_total',
          'tollgate_billing_gathered_nanos_total',
          'tollgate_billing_posted_nanos_total',
        ].map((name) => prometheus.value(name)),
      );
      expect(settled).toBeGreaterThan(0);
      expect(held).toBeGreaterThanOrEqual(settled!);
      expect(charged).toBe(settled);
      expect(gathered).toBe(settled);
      expect(posted).toBeLessThanOrEqual(gathered!);
      expect(await prometheus.value('tollgate_reconcile_runs_total{result="agree"}')).toBe(1);
      expect(
        await prometheus.value('sum(tollgate_refusals_total{code="credit_exhausted",plan="default"})'),
      ).toBeGreaterThan(0);
    }, PATIENT);
  });
});
