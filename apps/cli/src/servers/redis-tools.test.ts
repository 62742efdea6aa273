import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redisTools } from './redis-tools';

/** The address of a server that is not there. */
async function nowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return `redis://127.0.0.1:${port}`;
}

it('a loader that starts again is not ready by the file of its former run', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-ready-'));
  const file = join(directory, 'ready');
  writeFileSync(file, '');
  await expect(redisTools.keepFunctions(await nowhere(), file)).rejects.toThrow(/./);
  const isReady = existsSync(file);
  rmSync(directory, { recursive: true });
  expect(isReady).toBe(false);
});
