import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Preloads } from './preloads';

const WHO = '<link rel="preload" as="fetch" href="/console/api/me" crossorigin>';
const script = (name: string) => `<link rel="modulepreload" href="/console/assets/${name}.js">`;

describe('what a page of the console preloads', () => {
  const folder = mkdtempSync(join(tmpdir(), 'preloads-'));
  const manifest = join(folder, 'manifest.json');
  const chunk = (name: string, ...imports: string[]) => ({ file: `assets/${name}.js`, imports });
  writeFileSync(
    manifest,
    JSON.stringify({
      'index.html': chunk('index', '_react.js'),
      '_react.js': chunk('react'),
      // Two that import each other.
      '_table.js': chunk('table', '_react.js', '_row.js'),
      '_row.js': chunk('row', '_table.js'),
      'src/pages/tokens.tsx': { ...chunk('tokens', 'index.html', '_table.js'), dynamicImports: ['_chart.js'] },
      '_chart.js': chunk('chart'),
      'src/pages/operator-fleet.tsx': chunk('operator-fleet', '_react.js'),
    }),
  );
  const preloads = new Preloads(manifest);
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    ['/console/t/ten_1/settings/tokens', script('tokens') + script('table') + script('row')],
    ['/console/operator/fleet', script('operator-fleet')],
    ['/console/operator/none', ''],
    ['/console/t/ten_1/constructor', ''],
    ['/console', ''],
  ])('%s: the scripts of the page that all pages do not share', (path, scripts) => {
    expect(preloads.of(path)).toBe(scripts);
  });

  it('who is signed in, only with a cookie of a session', () => {
    expect(preloads.of('/console', '__Host-tollgate.session_token=a')).toBe(WHO);
    expect(preloads.of('/console', 'other=a')).toBe('');
  });
});
