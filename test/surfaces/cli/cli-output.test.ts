import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { withServer } from '../tollgate-process';

const MAIN = resolve(__dirname, '../../../apps/cli/dist/main.js');
/** More than a limit of one block, which has 512 or 1,024 bytes. */
const LONG = 'a line of an export\n'.repeat(500);
const PROBLEM = 'tollgate: The output cannot be written: the file would be larger than allowed.\n';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-output-'))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the command with its output in a file that may have one block, like one on a full disk. */
async function short(url: string, redirect: string, ...args: string[]): Promise<{ code: number; other: string }> {
  const command = ['-c', `ulimit -f 1; exec "$0" "$@" ${redirect}`, process.execPath, MAIN, ...args];
  const env = { PATH: process.env['PATH'], TOLLGATE_OPERATOR_URL: url, TOLLGATE_OPERATOR_SECRET: 'secret' };
  const child = spawn('sh', command, { cwd: folder, env });
  let other = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (other += String(chunk)));
  return { code: await new Promise((done) => child.once('close', done)), other };
}

const toFile = '> file';

it.each([
  ['usage export', ['usage', 'export']],
  ['audit --csv', ['audit', '--csv']],
])('%s whose last part the disk does not take fails', async (_, args) => {
  const ended = await withServer(LONG, (url) => short(url, toFile, ...args));
  expect(ended).toEqual({ code: 1, other: PROBLEM });
  expect(LONG.startsWith(readFileSync(join(folder, 'file'), 'utf8'))).toBe(true);
});

it('an answer that stdout does not take is on stderr, because a key is shown only once', async () => {
  const note = 'n'.repeat(2_000);
  const key = { id: 'key_1', name: 'one', key: 'sk-svc-only-once' };
  const ended = await withServer(JSON.stringify({ data: key, note }), (url) =>
    short(url, toFile, 'key', 'create', 'ten_1', 'one'),
  );
  expect(ended).toEqual({ code: 1, other: `sk-svc-only-once\n\nKey key_1 (one). ${note}\n${PROBLEM}` });
});

it('a remark that stderr does not take ends no command', async () => {
  writeFileSync(join(folder, 'full'), 'n'.repeat(2_000));
  const ended = await withServer('id\n', (url) => short(url, '2>> full', 'usage', 'export'));
  expect(ended).toEqual({ code: 0, other: 'id\n' });
});
