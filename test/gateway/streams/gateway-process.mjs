// A separate gateway process with short leases, for stopped-gateway.test.ts. SIGUSR2 blocks its event loop until the
// file UNBLOCK exists. While the file MUTE exists, no heartbeat is answered.
import { Global, Module } from '@nestjs/common';
import admission from '@tollgate/admission';
import contracts from '@tollgate/contracts';
import credentials from '@tollgate/credentials';
import gateway from '@tollgate/gateway';
import messaging from '@tollgate/messaging';
import nest from '@tollgate/messaging/nest';
import runtime from '@tollgate/runtime';
import { existsSync, writeSync } from 'node:fs';

const { DATABASE_URL: url, TOLLGATE_CONFIG: config, UNBLOCK, MUTE, LEASE_MS, HEARTBEAT_MS } = process.env;
const LOOK_EVERY_MS = 10;
const MUTE_MS = 100;
const still = new Int32Array(new SharedArrayBuffer(4));

class Store extends admission.PostgresAdmissionStore {
  progress(heartbeats) {
    if (!existsSync(MUTE)) return super.progress(heartbeats);
    const away = new contracts.UnavailableError('no heartbeat is answered');
    return new Promise((_, reject) => setTimeout(() => reject(away), MUTE_MS));
  }
}

class Seams {}
class Root {}
Global()(Seams);
Module({})(Seams);
const messages = new messaging.PostgresMessages({ url, applicationName: 'stopped-gateway-messages' });
const keys = new credentials.PostgresCredentialStore({ url, applicationName: 'stopped-gateway-credentials' });
const store = new Store({ url, leaseMs: Number(LEASE_MS) });
const providers = [
  { provide: credentials.CredentialStore, useValue: keys },
  { provide: admission.AdmissionStore, useValue: store },
  { provide: runtime.ConfigSource, useValue: new runtime.FileConfigSource(config, {}, 1_000) },
];
await Promise.all([keys.start(), store.start()]);
const heartbeatIntervalMs = Number(HEARTBEAT_MS);
const app = await gateway.createPublicApp({
  module: Root,
  imports: [
    nest.MessagesModule.of(messages),
    { module: Seams, providers, exports: providers },
    gateway.GatewayModule.register({ heartbeatIntervalMs }),
  ],
});
await app.listen(0, '127.0.0.1');

process.on('SIGUSR2', () => {
  writeSync(1, 'still\n');
  while (!existsSync(UNBLOCK)) Atomics.wait(still, 0, 0, LOOK_EVERY_MS);
});
writeSync(1, `${JSON.stringify({ url: await app.getUrl() })}\n`);
