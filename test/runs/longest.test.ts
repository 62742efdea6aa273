import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import longest from '../setup/longest.json';

const ROOT = resolve(__dirname, '../..');
const TABLE: Readonly<Record<string, number>> = longest;
const OTHER = 'test/docs/documents.test.ts';
const OTHER_SECONDS = 2;

/** The order of the files of the table and one other. In another process, because the sequencer is an ES module. */
function order(): string[] {
  const paths = [OTHER, ...Object.keys(longest).toReversed()];
  // Without a cache, as in a fresh checkout.
  const script = `import LongestFirst from '${pathToFileURL(join(ROOT, 'test/setup/longest-first.mjs')).href}';
    const context = { config: { cache: false }, hasteFS: { getSize: () => 0 } };
    const tests = ${JSON.stringify(paths)}.map((path) => ({ path: '${ROOT}/' + path, context }));
    console.log(JSON.stringify(new LongestFirst({}).sort(tests).map(({ path }) => path.slice(${ROOT.length + 1}))));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  return JSON.parse(printed) as string[];
}

const secondsOf = (path: string) => TABLE[path] ?? OTHER_SECONDS;
const sum = (paths: readonly string[]) => paths.reduce((seconds, path) => seconds + secondsOf(path), 0);
const isWaiting = (path: string) => path.endsWith('.docker.test.ts');

it('every test file in longest.json exists', () => {
  expect(Object.keys(longest).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('the longest files run first, of those with containers and of the others, if Jest remembers no earlier run', () => {
  const paths = order();
  expect(paths.toSorted()).toEqual([OTHER, ...Object.keys(longest)].toSorted());
  for (const waits of [true, false]) {
    const seconds = paths.filter((path) => isWaiting(path) === waits).map(secondsOf);
    expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
  }
});

it('at any time, about the same share of the files with containers and of the others has begun', () => {
  const paths = order();
  const kinds = [true, false].map((waits) => paths.filter((path) => isWaiting(path) === waits));
  const longestShare = Math.max(...kinds.map((files) => secondsOf(files[0]!) / sum(files)));
  for (const index of paths.keys()) {
    const begun = paths.slice(0, index);
    const [waiting, working] = kinds.map((files) => sum(files.filter((path) => begun.includes(path))) / sum(files));
    expect(Math.abs(waiting! - working!)).toBeLessThanOrEqual(longestShare);
  }
});
