import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const MODULE = pathToFileURL(join(resolve(__dirname, '../..'), 'tools/changed/reached.mjs')).href;
const CLI = 'test/surfaces/cli/cli.test.ts';
const MONEY_OF_GATEWAY = 'test/gateway/money.test.ts';
const LEDGER = 'apps/billing/src/ledger/history.test.ts';
const ONE_PROCESS = 'test/e2e/one-process.test.ts';
const DOCUMENTS = 'test/docs/documents.test.ts';

/** The test files that a change of these files reaches, or null for all. In another process, as it is an ES module. */
function reached(...changed: string[]): string[] | null {
  const script = `import { reachedTests } from '${MODULE}';
    console.log(JSON.stringify(await reachedTests(${JSON.stringify(changed)})));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  return JSON.parse(printed) as string[] | null;
}

it('a change of an app reaches its own tests and those that start it, and no others', () => {
  const tests = reached('apps/cli/src/index.ts');
  expect(tests).toEqual(expect.arrayContaining([CLI, 'test/e2e/quickstart.test.ts', DOCUMENTS]));
  expect(tests).not.toContain(MONEY_OF_GATEWAY);
  expect(tests).not.toContain(LEDGER);
});

it('a change of a service reaches the tests that start it only by its name', () => {
  const tests = reached('apps/metering/src/index.ts', 'apps/metering/src/migrations/001-metering.sql');
  expect(tests).toEqual(
    expect.arrayContaining(['test/services/running.docker.test.ts', 'test/stack/stack.docker.test.ts']),
  );
  expect(tests).not.toContain('apps/gateway/src/prompt/tokenizer.test.ts');
});

it('a change of a library reaches the tests of all projects that depend on it', () => {
  const tests = reached('libs/postgres/src/index.ts');
  expect(tests).toEqual(
    expect.arrayContaining(['libs/postgres/src/functions.test.ts', LEDGER, MONEY_OF_GATEWAY, ONE_PROCESS]),
  );
  expect(tests).not.toContain('libs/contracts/src/money.test.ts');
});

it('a change of a file that tests share reaches the tests that import it, directly or not, or start it', () => {
  const tests = reached('test/e2e/fixtures.ts', 'test/kill/kill-at.mjs');
  const expected = [ONE_PROCESS, 'test/faults/faults.docker.test.ts', 'test/kill/kill-anywhere.test.ts'];
  expect(tests).toEqual(expect.arrayContaining(expected));
  expect(tests).not.toContain(MONEY_OF_GATEWAY);
});

it('a document reaches the tests that read documents, and nothing else', () => {
  const tests = reached('docs/money.md');
  expect(tests).toEqual(expect.arrayContaining([DOCUMENTS, 'test/rights/documented.test.ts']));
  expect(tests).not.toContain('test/faults/faults.docker.test.ts');
  expect(tests).not.toContain(LEDGER);
});

it.each([
  'package-lock.json',
  'tools/build/build.mjs',
  'deploy/Dockerfile',
  'test/setup/global-setup.mjs',
  'tollgate.yaml',
])('a change of %s reaches all tests', (path) => expect(reached(path, 'docs/money.md')).toBeNull());

it('no change reaches no test', () => expect(reached()).toEqual([]));
