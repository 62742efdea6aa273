import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import longest from '../setup/longest.json';

const ROOT = resolve(__dirname, '../..');

it('every test file in longest.json exists', () => {
  expect(Object.keys(longest).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('the longest files run first if Jest remembers no earlier run', () => {
  const paths = ['test/docs/documents.test.ts', ...Object.keys(longest).toReversed()];
  // In another process, because it is an ES module. Without a cache, as in a fresh checkout.
  const script = `import LongestFirst from '${pathToFileURL(join(ROOT, 'test/setup/longest-first.mjs')).href}';
    const context = { config: { cache: false }, hasteFS: { getSize: () => 0 } };
    const tests = ${JSON.stringify(paths)}.map((path) => ({ path: '${ROOT}/' + path, context }));
    console.log(JSON.stringify(new LongestFirst({}).sort(tests).map(({ path }) => path.slice(${ROOT.length + 1}))));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  const seconds = (JSON.parse(printed) as (keyof typeof longest)[]).map((path) => longest[path] ?? 0);
  expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
  expect(seconds).toHaveLength(paths.length);
});
