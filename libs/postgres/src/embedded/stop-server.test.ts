import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopServer } from './stop-server';

// Processes that live stand for the servers.
const cluster = mkdtempSync(join(tmpdir(), 'tollgate-stop-'));
const file = join(cluster, 'postmaster.pid');
afterAll(() => rmSync(cluster, { recursive: true }));
beforeEach(() => writeFileSync(file, `${process.pid}\n`));

const stopped = (work: () => void) =>
  stopServer(cluster, 'pg_ctl', {
    run: () => {
      work();
      return Promise.resolve('');
    },
  });

it('a server is stopped although the next one has already started on its cluster', () =>
  stopped(() => writeFileSync(file, `${process.ppid}\n`)));

it('a stop waits until the server has ended', async () => {
  await stopped(() => setTimeout(() => rmSync(file), 1));
  expect(existsSync(file)).toBe(false);
});
