import { Global, Module, type DynamicModule } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import { mintCredential, newId, RequestError, SCOPES, type RequestOf } from '@tollgate/contracts';
import { CredentialStore, PostgresCredentialStore } from '@tollgate/credentials';
import { PostgresMessages, type Messages } from '@tollgate/messaging';
import { MessagesModule } from '@tollgate/messaging/nest';
import { ConfigSource, readConfigFile } from '@tollgate/runtime';
import { eventually, PATIENT_CALL_MS, useTestDatabase, withDatabase } from '@tollgate/testing';
import fs from 'node:fs';
import { GatewayModule } from '../gateway.module';
import { CallRates, MANAGEMENT_REQUESTS_PER_MINUTE } from './call-rates';
import { createPublicApp } from '../public/public-app';
import { openApiYaml } from '../openapi/document';
import { MANAGEMENT_ERRORS } from './errors';

// Real: HTTP, PostgreSQL, the seams. The services behind Messages are handlers in this file, so that they can fail.

let app: NestFastifyApplication;
let withoutStore: NestFastifyApplication;
let messages: PostgresMessages;
/** Messages of the application whose credential store is unavailable. */
let silent: PostgresMessages;
let credentials: PostgresCredentialStore;
let deadCredentials: PostgresCredentialStore;
let admission: PostgresAdmissionStore;
const token = mintCredential('token');
const tokenId = newId('tok');
const used: RequestOf<'auth.tokens.used'>[] = [];
let authTakesUses = false;
const createRequests: RequestOf<'auth.keys.create'>[] = [];
let written = '';

class FileConfig extends ConfigSource {
  readonly current = readConfigFile('tollgate.yaml', {});
  addCheck(): void {}
  onChange(): void {}
  close(): void {}
}

@Global()
@Module({})
class Seams {
  static of(store: CredentialStore): DynamicModule {
    const providers = [
      { provide: CredentialStore, useValue: store },
      { provide: AdmissionStore, useValue: admission },
      { provide: ConfigSource, useValue: new FileConfig() },
    ];
    return { module: Seams, providers, exports: providers };
  }
}

async function start(bus: Messages, store: CredentialStore): Promise<NestFastifyApplication> {
  const root = { module: class Root {}, imports: [MessagesModule.of(bus), Seams.of(store), GatewayModule.register()] };
  const started = await createPublicApp(root);
  await started.listen(0, '127.0.0.1');
  return started;
}

afterAll(async () => {
  await messages.stopConsuming();
  await app.close();
  await withoutStore.close();
  await Promise.all([messages.close(), silent.close()]);
  await Promise.all([credentials.close(), deadCredentials.close(), admission.close()]);
});
const database = useTestDatabase();
beforeAll(async () => {
  const { url } = database;
  messages = new PostgresMessages({ url, applicationName: 'failures-test-messages' });
  silent = new PostgresMessages({ url, applicationName: 'failures-test-silent' });
  credentials = new PostgresCredentialStore({ url, applicationName: 'failures-test-credentials' });
  deadCredentials = new PostgresCredentialStore({
    url: withDatabase(url, 'there_is_no_such_database'),
    applicationName: 'failures-test-dead',
  });
  // A call that the store does not answer in time is allowed, and not counted.
  admission = new PostgresAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS });
  await Promise.all([credentials.start(), admission.start()]);
  await credentials.put([
    {
      hash: token.hash,
      kind: 'token',
      id: tokenId,
      tenantId: newId('ten'),
      plan: 'default',
      profile: '',
      scopes: SCOPES,
      expiresAtMs: null,
      revokedAtMs: null,
      version: 1,
    },
  ]);
  messages.handle('auth.keys.create', async (request) => {
    createRequests.push(request);
    throw new Error(`inner failure with ${request.hash}`);
  });
  messages.handle('auth.keys.list', () => Promise.reject(new RequestError('a_code_of_its_own', 'inner message')));
  messages.handle('metering.usage.query', () => new Promise(() => {}));
  messages.handle('auth.tokens.used', async (request) => {
    if (!authTakesUses) throw new Error('auth is down');
    used.push(request);
    return { recorded: request.uses.length };
  });
  app = await start(messages, credentials);
  withoutStore = await start(silent, deadCredentials);
  const writeSync = fs.writeSync as (fd: number, text: string) => number;
  jest.spyOn(fs, 'writeSync').mockImplementation((fd: number, text: string) => {
    if (fd === 2) written += text;
    return fd === 2 ? Buffer.byteLength(text) : writeSync(fd, text);
  });
});

async function ask(path: string, init: RequestInit = {}, at = app) {
  const response = await fetch(`${await at.getUrl()}/_api/v1${path}`, {
    ...init,
    headers: { authorization: `Bearer ${token.value}`, 'content-type': 'application/json' },
  });
  const json = (await response.json()) as { error: { code: string; message: string } };
  return { status: response.status, code: json.error.code, message: json.error.message, headers: response.headers };
}

describe('the request limit of a token', () => {
  const ofToken = () => ({ id: newId('tok'), tenantId: newId('ten') });
  const CALLS = MANAGEMENT_REQUESTS_PER_MINUTE + 40;

  it('holds over all processes', async () => {
    const one = ofToken();
    const processes = [new CallRates(admission), new CallRates(admission)];
    const began = Date.now();
    const waits: number[] = [];
    for (let n = 0; n < CALLS; n++) waits.push(await processes[n % 2]!.take(one, Date.now()));
    const refilled = Math.ceil(((Date.now() - began) / 60_000) * MANAGEMENT_REQUESTS_PER_MINUTE);
    const allowed = waits.filter((wait) => wait === 0).length;
    expect(allowed).toBeGreaterThanOrEqual(MANAGEMENT_REQUESTS_PER_MINUTE);
    expect(allowed).toBeLessThanOrEqual(MANAGEMENT_REQUESTS_PER_MINUTE + refilled);
    expect(await processes[0]!.take(ofToken(), Date.now())).toBe(0);
  });

  it('holds in each process by itself while the store does not answer', async () => {
    const away = { takeCall: () => Promise.reject(new Error('away')) } as unknown as AdmissionStore;
    const [one, rates] = [ofToken(), new CallRates(away)];
    const waits: number[] = [];
    for (let n = 0; n < CALLS; n++) waits.push(await rates.take(one, 0));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(MANAGEMENT_REQUESTS_PER_MINUTE);
  });

  it('lasts no longer in a process whose clock was set back', async () => {
    const away = { takeCall: () => Promise.reject(new Error('away')) } as unknown as AdmissionStore;
    const [one, rates] = [ofToken(), new CallRates(away)];
    const DAY_MS = 86_400_000;
    while ((await rates.take(one, DAY_MS)) === 0);
    const waitMs = await rates.take(one, 0);
    expect(waitMs).toBe(60_000 / MANAGEMENT_REQUESTS_PER_MINUTE);
    expect(await rates.take(one, waitMs)).toBe(0);
  });
});

describe('the management API', () => {
  it('answers 503 with Retry-After and no reason while a service fails, is missing or does not answer', async () => {
    const body = JSON.stringify({ name: 'k' });
    const answers = [
      await ask('/keys', { method: 'POST', body }),
      await ask('/billing'),
      await ask('/usage'), // Does not answer: bounded by the deadline of the request.
      await ask('/keys', {}, withoutStore),
    ];
    for (const { status, code, message, headers } of answers) {
      expect([status, code, message]).toEqual([503, 'unavailable', MANAGEMENT_ERRORS.unavailable.message]);
      expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
  });

  it('answers 500 internal_error without the message of a refusal that is not in the table', async () => {
    const { status, code, message } = await ask('/keys');
    expect([status, code, message]).toEqual([500, 'internal_error', MANAGEMENT_ERRORS.internal_error.message]);
  });

  it('sends auth only the hash and the last four characters of a key', () => {
    expect(createRequests).toHaveLength(1);
    expect(Object.keys(createRequests[0]!).sort()).toEqual(['by', 'hash', 'last4', 'name', 'tenantId']);
    expect(createRequests[0]!.hash).toMatch(/^[0-9a-f]{64}$/);
  });

  it('keeps the uses of a token while auth fails, and sends the last of them afterwards', async () => {
    expect(used).toEqual([]);
    await eventually(() => expect(written).toContain('last uses are not recorded yet'));
    authTakesUses = true;
    await eventually(() => expect(used).toHaveLength(1));
    expect(used[0]!.uses).toEqual([{ id: tokenId, at: expect.any(String) }]);
  });

  it('never logs a credential when something fails', () => {
    expect(written).toContain('answered 503');
    expect(written).toContain('answered 500');
    expect(written).not.toContain(token.value);
    expect(written).not.toMatch(/sk-svc-|fma_/);
  });

  it('documents every error code of the table', () => {
    const document = openApiYaml();
    for (const code of Object.keys(MANAGEMENT_ERRORS)) expect(document).toContain(code);
  });
});
