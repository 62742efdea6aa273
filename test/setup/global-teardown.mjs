import { rm } from 'node:fs/promises';

export default async function globalTeardown() {
  const started = globalThis.__tollgateTestServer;
  if (!started) return;
  await started.server.stop();
  await rm(started.dataDirectory, { recursive: true, force: true });
}
