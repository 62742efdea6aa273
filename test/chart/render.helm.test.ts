import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GOLDEN, ROOT } from './manifests';

/** Runs a script with the functions of the renderer. */
const run = (script: string) =>
  execFileSync(
    process.execPath,
    ['--input-type=module', '--eval', `import * as chart from '${join(ROOT, 'tools/chart/render.mjs')}';\n${script}`],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  );

it.each(GOLDEN)('%s: helm renders the golden manifests', (name) => {
  const rendered = run(`process.stdout.write(chart.render('${name}'))`);
  // Otherwise run: node tools/chart/render.mjs
  expect(rendered).toBe(readFileSync(join(ROOT, 'test/chart/golden', `${name}.yaml`), 'utf8'));
});

it.each(GOLDEN)('%s: helm finds no fault in the chart', (name) => {
  const linted = run(
    `process.stdout.write(chart.runHelm('lint', '--strict', chart.CHART, '--values', chart.VALUES.${name}))`,
  );
  expect(linted).toContain('1 chart(s) linted, 0 chart(s) failed');
});

it('helm lets hooks use the stores of devStores at an upgrade, when they are there', () => {
  const args = JSON.stringify(['x', '--is-upgrade', '--set', 'devStores.enabled=true,config=a']);
  const rendered = run(
    `process.stdout.write(chart.runHelm('template', '--kube-version', '1.34.0', ...${args}, chart.CHART))`,
  );
  expect(rendered).toContain('helm.sh/hook: pre-install,pre-upgrade');
});

const BARE_ROUTE = 'devStores.enabled=true,jobs.hooks=false,config=a,httpRoute.enabled=true';
const ROUTE = `${BARE_ROUTE},httpRoute.parentRefs[0].name=public`;

it.each([
  ['the first host', 'httpRoute.hostnames={a.example.com,b.example.com}', 'https://a.example.com'],
  ['no wildcard', 'httpRoute.hostnames={*.example.com,api.example.org}', 'https://api.example.org'],
  ['console.url', 'httpRoute.hostnames={*.example.com},console.url=https://c.example.com', 'https://c.example.com'],
])('helm gives the console %s of an HTTPRoute as its URL', (_, set, url) => {
  const args = JSON.stringify(['x', '--set', `${ROUTE},${set}`]);
  const rendered = run(
    `process.stdout.write(chart.runHelm('template', '--kube-version', '1.34.0', ...${args}, chart.CHART))`,
  );
  expect(rendered).toContain(`{ name: TOLLGATE_CONSOLE_URL, value: "${url}" }`);
});

it('helm needs no URL of a console that is left out', () => {
  const args = JSON.stringify(['x', '--set', `${ROUTE},httpRoute.hostnames={*.example.com},console.enabled=false`]);
  const rendered = run(
    `process.stdout.write(chart.runHelm('template', '--kube-version', '1.34.0', ...${args}, chart.CHART))`,
  );
  expect(rendered).not.toContain('TOLLGATE_CONSOLE_URL');
});

it.each([
  ['without brokers', '--set postgres.host=a,config=a', 'kafka.brokers is required'],
  ['without models', '--set postgres.host=a,kafka.brokers=a:1', 'config is required'],
  ['with stores that its hooks would wait for', '--set devStores.enabled=true,config=a', 'needs jobs.hooks: false.'],
  [
    'with only a wildcard for its console',
    `--set ${ROUTE},httpRoute.hostnames={*.example.com}`,
    'console.url is required',
  ],
  [
    'with an Ingress whose host is a wildcard',
    '--set devStores.enabled=true,jobs.hooks=false,config=a,ingress.enabled=true,ingress.host=*.example.com',
    'console.url is required',
  ],
  ['with a route that no Gateway serves', `--set ${BARE_ROUTE}`, 'httpRoute.parentRefs is required'],
  ['with a misspelt value', '--set gateway.replica=3', "additional properties 'replica' not allowed"],
])('helm refuses the chart %s and says why', (_, set, reason) => {
  const args = JSON.stringify(['template', 'x', '--kube-version', '1.34.0', ...set.split(' ')]);
  const refused = run(`try {
    chart.runHelm(...${args}, chart.CHART);
  } catch (error) {
    process.stdout.write(error.stderr);
  }`);
  expect(refused).toContain(reason);
});
