import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { eventually } from '@tollgate/testing';
import { type Services } from '../services';

const ROOT = resolve(__dirname, '../../..');

/** The labels of our metrics in docs/operating/metrics.md; generated-docs.test.ts compares the rest with the code. */
const documented = new Map(
  [
    ...readFileSync(join(ROOT, 'docs/operating/metrics.md'), 'utf8').matchAll(
      /^\| `(tollgate_\w+)` +\| \w+ +\| ([\w`, ]*?) *\|/gm,
    ),
  ].map(([, name, labels]) => [name!, [...labels!.matchAll(/\w+/g)].map(([label]) => label)]),
);

export function metricsTests(services: Services): void {
  const scrape = async () => (await fetch(`${services.operatorUrl}/metrics`)).text();
  const names = (text: string) => [...text.matchAll(/^# TYPE (tollgate_\w+) /gm)].map(([, name]) => name!).sort();

  it('the operating manual names exactly the metrics of a process', async () => {
    expect(names(await scrape())).toEqual([...documented.keys()].sort());
  });

  it('each metric has the documented labels, and waiting messages are counted', async () => {
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
      expect([name, new Set(shown)]).toEqual([name, new Set(found)]);
    }
  });
}
