import { rm } from 'node:fs/promises';
import { cleanDocker } from './docker.mjs';

export default async function globalTeardown() {
  cleanDocker();
  const started = globalThis.__tollgateTestServer;
  if (!started) return;
  await started.server.stop();
  await rm(started.dataDirectory, { recursive: true, force: true });
}
