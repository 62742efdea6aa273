import { newId } from '@tollgate/contracts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Preloads } from './preloads';

const SESSION = '__Host-tollgate.session_token=a';
const answer = (path: string) => `<link rel="preload" as="fetch" href="/console/api/${path}" crossorigin>`;
const WHO = answer('me');
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
      'src/pages/overview.tsx': chunk('overview', 'index.html'),
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
    expect(preloads.of('/console/account', SESSION)).toBe(WHO);
    expect(preloads.of('/console/account', 'other=a')).toBe('');
  });

  it.each(['/console', '/console/'])('%s: the scripts of the Overview, for a person who is signed in', (path) => {
    expect(preloads.of(path, SESSION)).toBe(WHO + script('overview'));
  });

  it('the Overview: its numbers, only with a cookie of a session', () => {
    const id = newId('ten');
    const path = `/console/t/${id}/overview`;
    expect(preloads.of(path, SESSION)).toBe(WHO + answer(`tenants/${id}/overview`) + script('overview'));
    expect(preloads.of(path)).toBe(script('overview'));
  });

  it.each(['ten_1', `${newId('ten')}">`, `${newId('ten')}%22`, newId('key'), ''])(
    'no numbers of %j, which is no id of a tenant',
    (id) => {
      expect(preloads.of(`/console/t/${id}/overview`, SESSION)).toBe(WHO + script('overview'));
    },
  );

  it.each(['sign-in', 'forgot-password', 'reset-password'])(
    'no answer for /console/%s, after which another person may be signed in',
    (page) => {
      expect(preloads.of(`/console/${page}`, SESSION)).toBe('');
    },
  );

  it('no numbers of the Overview for another page of the tenant', () => {
    for (const page of ['settings/tokens', 'overview/x', 'x/overview'])
      expect(preloads.of(`/console/t/${newId('ten')}/${page}`, SESSION)).not.toContain('/api/tenants/');
  });
});
