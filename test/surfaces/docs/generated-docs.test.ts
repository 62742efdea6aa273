import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../../..');

it('the tables of docs/operating match the declarations in the code', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'tools/docs/docs.mjs'), '--check'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
