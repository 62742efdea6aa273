import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { eventually } from '@tollgate/testing';
import { useServices } from './services';

const ROOT = resolve(__dirname, '../..');
const SERVICES = ['gateway', 'auth', 'metering', 'billing'];
const services = useServices();

/** docs/operating.md: each of our metrics with its labels, and the services that it says to look at. */
const documented = new Map(
  [
    ...readFileSync(join(ROOT, 'docs/operating.md'), 'utf8').matchAll(
      /^\| `(tollgate_\w+)(?:\{([\w,]+)\})?` +\|.*\| ([a-z, ]+?) +\|$/gm,
    ),
  ].map(([, name, labels, where]) => [name!, { labels: labels?.split(',') ?? [], where: where!.split(', ') }]),
);

const scrape = async () => (await fetch(`${services.operatorUrl}/metrics`)).text();
const names = (text: string) => [...text.matchAll(/^# TYPE (tollgate_\w+) /gm)].map(([, name]) => name!).sort();

it('the operating manual names every metric that a process shows, and no other', async () => {
  expect(names(await scrape())).toEqual([...documented.keys()].sort());
});

it('each has the labels that the manual says, and messages that wait are counted', async () => {
  const text = await eventually(async () => {
    const scraped = await scrape();
    for (const [topic, group] of [
      ['usage-events', 'metering'],
      ['charges', 'billing'],
      ['credit-news', 'admission'],
    ])
      expect(scraped).toContain(`tollgate_messages_waiting{topic="${topic}",group="${group}"} 0`);
    return scraped;
  });
  const series = [...text.matchAll(/^(tollgate_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$/gm)];
  expect(series.length).toBeGreaterThan(20);
  for (const [, name, labels = ''] of series) {
    const shown = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label!).filter((label) => label !== 'le');
    const found = documented.get(name!) ?? documented.get(`${name}_total`);
    expect([name, new Set(shown)]).toEqual([name, new Set(found?.labels)]);
  }
});

it.each(SERVICES)('%s by itself shows those that the manual says it has', (app) => {
  const script = `
    require(${JSON.stringify(join(ROOT, `apps/${app}/dist/${app}.module.js`))});
    require('@tollgate/messaging');
    require('@tollgate/runtime').metrics.metrics().then((text) => console.log(text));`;
  const shown = names(
    execFileSync(process.execPath, ['--eval', script], { cwd: join(ROOT, 'apps', app), encoding: 'utf8' }),
  );
  const said = [...documented].flatMap(([name, { where }]) => (where.includes(app) ? [name] : []));
  expect(said.length).toBeGreaterThan(0);
  expect(shown).toEqual(expect.arrayContaining(said));
  for (const name of shown) expect(documented.has(name)).toBe(true);
});
