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

it.each([
  ['without brokers', '--set postgres.host=a,config=a', 'kafka.brokers is required'],
  ['without models', '--set postgres.host=a,kafka.brokers=a:1', 'config is required'],
  ['with stores that its hooks would wait for', '--set devStores.enabled=true,config=a', 'needs jobs.hooks: false.'],
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
