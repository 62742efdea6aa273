import fs, { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCluster, whyNotCreated } from './create-cluster';
import type { ServerUser } from './run-as';

const why = (error: object) => whyNotCreated('/data', '/data/postgres', error as NodeJS.ErrnoException);
const FULL =
  'PostgreSQL could not be set up in the data directory /data, because its disk is full: free at least 200 MB there, ' +
  'or choose another with TOLLGATE_DATA_DIR.';
const OUTPUT = `2026-11-29 19:48:07 UTC [2] FATAL:  could not write to file "pg_wal/xlogtemp.2": No space left on device
child process exited with exit code 1
initdb: removing contents of data directory "/data/postgres.new-ab740e05"
The files belonging to this database system will be owned by user "postgres".
running bootstrap script ...`;

it('a full disk is one line that says what to do, whether initdb or this process met it', () => {
  expect(why({ message: OUTPUT })).toBe(FULL);
  expect(why({ code: 'ENOSPC', message: 'ENOSPC: no space left on device, mkdir' })).toBe(FULL);
  expect(why({ message: OUTPUT.replace('No space left on device', 'Disk quota exceeded') })).toBe(
    FULL.replace('disk is full', 'disk quota is used up'),
  );
});

it('another failure is reported in PostgreSQL’s own words', () => {
  expect(why({ message: 'initdb: error: invalid locale name "C"' })).toBe(
    'PostgreSQL could not set up /data/postgres: initdb: error: invalid locale name "C"',
  );
});

it('a password that a full disk does not take leaves no file, so that the next start makes one', async () => {
  const root = mkdtempSync(join(tmpdir(), 'tollgate-cluster-'));
  const user = { own: () => {}, run: () => Promise.resolve('') } as unknown as ServerUser;
  jest.spyOn(fs, 'fsyncSync').mockImplementation(() => {
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  });
  try {
    await expect(createCluster(root, join(root, 'postgres'), 'initdb', user)).rejects.toThrow('its disk is full');
    expect(readdirSync(root)).toEqual([]);
  } finally {
    jest.restoreAllMocks();
    rmSync(root, { recursive: true });
  }
});
