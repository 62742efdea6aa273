import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from './files';

interface Compose {
  services: Record<string, { restart?: string; environment?: Record<string, string>; networks?: string[] }>;
}

interface Prometheus {
  scrape_configs: {
    static_configs?: { targets: string[] }[];
    dns_sd_configs?: { names: string[]; type: string; port: number }[];
  }[];
}

const PORT = 9090;

it('the documented configuration of Prometheus finds every container of the stack that has metrics', () => {
  const page = readFileSync(join(ROOT, 'docs/operating/observability.md'), 'utf8');
  const blocks = [...page.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text]) => text!);
  const [text, ...others] = blocks.filter((block) => block.includes('scrape_configs'));
  expect(others).toEqual([]);
  const scraped = (parse(text!) as Prometheus).scrape_configs;

  const composeFile = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const { services } = parse(composeFile, { merge: true, maxAliasCount: -1 }) as Compose;
  // The jobs have the setting too, but end before anybody could scrape them.
  const measured = Object.entries(services).filter(
    ([, { restart, environment = {} }]) => restart !== 'no' && 'TOLLGATE_METRICS_TOKEN_FILE' in environment,
  );
  expect(measured.length).toBeGreaterThan(3);
  const found = scraped.flatMap(({ dns_sd_configs: named = [] }) => named);
  expect(found.flatMap(({ names }) => names).sort()).toEqual(measured.map(([name]) => name).sort());
  expect(found.map(({ type, port }) => ({ type, port }))).toEqual(found.map(() => ({ type: 'A', port: PORT })));
  // Each can be scaled, and one target would reach only one of its containers at a time.
  expect(scraped.flatMap(({ static_configs: fixed = [] }) => fixed)).toEqual([]);
  for (const [, { networks }] of measured) expect(networks).toContain('kafka');
});
