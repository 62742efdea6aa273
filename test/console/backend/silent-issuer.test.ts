import { useTestDatabase } from '@tollgate/testing';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const SCRIPT = resolve(__dirname, 'silent-issuer.mjs');
const database = useTestDatabase();
const ended = new AbortController();
afterAll(() => ended.abort());

it('an issuer that takes connections and never answers stops neither the start nor any other call', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT, database.url], { signal: ended.signal });
  // People can come back from the issuer as soon as it answers, so its cookies are lax from the start.
  const works = { session: null, password: null, sameSite: 'lax' };
  expect(JSON.parse(stdout)).toEqual({ asked: 1, offers: false, ...works });
});
