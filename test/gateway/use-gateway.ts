import { Global, Module, type DynamicModule } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AdmissionStore, PostgresAdmissionStore, type Limits, type Snapshot } from '@tollgate/admission';
import { mintCredential, NANOS_PER_CENT, newId, type UsageEvent } from '@tollgate/contracts';
import { CredentialStore, PostgresCredentialStore, type CredentialRecord } from '@tollgate/credentials';
import { PostgresMessages } from '@tollgate/messaging';
import { MessagesModule } from '@tollgate/messaging/nest';
import { ConfigSource, FileConfigSource } from '@tollgate/runtime';
import { eventually, PATIENT_CALL_MS, useTestDatabase, type TestDatabase } from '@tollgate/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { createPublicApp, GatewayModule, type GatewayOptions } from '../../apps/gateway/src';
import { startSimulator, type Simulator, type SimulatorConfig } from '../../apps/simulator/src';

/** A tenant with credit and a valid key, which billing and auth do not know. */
export interface Caller {
  tenantId: string;
  keyId: string;
  key: string;
  record: CredentialRecord;
  openai: OpenAI;
}

export interface CallerOptions {
  nanos?: bigint;
  profile?: string;
  plan?: string;
  /** The only models that its key may use. */
  models?: string[];
}

export interface GatewayUnderTest {
  /** The origin, without a path. */
  url: string;
  app: NestFastifyApplication;
  simulator: Simulator;
  admission: PostgresAdmissionStore;
  credentials: CredentialStore;
  database: TestDatabase;
  caller(options?: CallerOptions): Promise<Caller>;
  /** Usage events of the tenant's settled requests. Waits until there are `count`. */
  events(tenantId: string, count: number): Promise<UsageEvent[]>;
  /** Those that have arrived. */
  eventsOf(tenantId: string): UsageEvent[];
  snapshot(tenantId: string): Promise<Snapshot>;
  post(path: string, body: unknown, caller: Caller, init?: RequestInit): Promise<Response>;
  setConfig(yaml: string): void;
}

export interface GatewayTestOptions extends GatewayOptions {
  simulator?: SimulatorConfig;
  /**
   * The time limit of the admission store. By default so long that no test meets the refusal of a gateway whose store
   * does not answer within a second because the machine stands still.
   */
  admissionTimeoutMs?: number;
  yaml?: (simulatorUrl: string) => string;
}

/** Time for usage events to be published and consumed on a busy machine. */
const EVENTS_TIMEOUT_MS = 20_000;
/** Time for the first read of a credential. */
const CALL_TIMEOUT_MS = 15_000;

export const PLENTY: Limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 10_000 };

/** The models and plans that most tests use. */
export function configYaml({ models = '', plans = '' } = {}): string {
  const limits = JSON.stringify(PLENTY);
  return `
models:
  - { id: small, kind: chat, contextTokens: 8192, maxOutputTokens: 4096,
      price: { input: '1', cachedInput: '0.5', output: '2' }, backends: [{ url: 'simulator:', model: inner-small }] }
  - { id: long, kind: chat, contextTokens: 131072, maxOutputTokens: 16384,
      price: { input: '1', output: '2' }, backends: [{ url: 'simulator:', model: inner-long }] }
  - { id: eyes, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, maxTokensPerImage: 85,
      price: { input: '1', output: '2' }, backends: [{ url: 'simulator:', model: inner-eyes }] }
  - { id: embed, kind: embedding, contextTokens: 256,
      price: { input: '1', output: '0' }, backends: [{ url: 'simulator:', model: inner-embed }] }
${models}
plans:
  - id: default
    limits: ${limits}
    profiles:
      - { id: default, models: ['*'], limits: ${limits} }
      - { id: one-model, models: ['small'], limits: ${limits} }
${plans}
`;
}

/** Starts a gateway for one test file, on a real port, with the seams on a real PostgreSQL, and the simulator. */
export function useGateway({
  simulator: simulatorConfig = {},
  admissionTimeoutMs = PATIENT_CALL_MS,
  yaml = () => configYaml(),
  ...options
}: GatewayTestOptions = {}): GatewayUnderTest {
  const gateway = {} as GatewayUnderTest;
  const cleanUp: (() => Promise<unknown> | unknown)[] = [];
  afterAll(async () => {
    for (const step of cleanUp.reverse()) await step();
  });
  const database = useTestDatabase();
  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-gateway-'));
    cleanUp.push(() => rmSync(directory, { recursive: true }));
    const simulator = await startSimulator(simulatorConfig);
    cleanUp.push(() => simulator.close());
    const file = join(directory, 'tollgate.yaml');
    writeFileSync(file, yaml(simulator.url));
    const config = new FileConfigSource(file, {}, 20);
    cleanUp.push(() => config.close());
    const { url } = database;
    const messages = new PostgresMessages({ url, applicationName: 'gateway-test-messages' });
    const reads = { applicationName: 'gateway-test-credentials', callTimeoutMs: CALL_TIMEOUT_MS };
    const credentials = new PostgresCredentialStore({ url, ...reads });
    const admission = new PostgresAdmissionStore({ url, callTimeoutMs: admissionTimeoutMs });
    const events: UsageEvent[] = [];
    messages.consume('usage-events', 'metering', async (batch) => void events.push(...batch));
    await Promise.all([credentials.start(), admission.start()]);
    cleanUp.push(() => Promise.all([credentials.close(), admission.close(), messages.close()]));
    cleanUp.push(() => messages.stopConsuming());
    const seams = seamsModule([
      [CredentialStore, credentials],
      [AdmissionStore, admission],
      [ConfigSource, config],
    ]);
    const app = await createPublicApp({
      module: class Root {},
      imports: [
        MessagesModule.of(messages),
        seams,
        GatewayModule.register({ simulatorUrl: simulator.url, ...options }),
      ],
    });
    await app.listen(0, '127.0.0.1');
    cleanUp.push(() => {
      // Otherwise an unused connection of a client would delay the end by more than a minute.
      app.getHttpServer().closeAllConnections();
      return app.close();
    });
    const baseUrl = await app.getUrl();
    Object.assign(gateway, { url: baseUrl, app, simulator, admission, credentials, database });
    Object.assign(gateway, {
      caller: (caller?: CallerOptions) => newCaller(gateway, caller),
      events: (tenantId: string, count: number) =>
        eventually(
          () => {
            const own = events.filter((event) => event.tenantId === tenantId);
            expect(own).toHaveLength(count);
            return own;
          },
          { timeoutMs: EVENTS_TIMEOUT_MS },
        ),
      eventsOf: (tenantId: string) => events.filter((event) => event.tenantId === tenantId),
      snapshot: async (tenantId: string) => (await admission.snapshot({ tenantId, limit: 1 }))[0]!,
      post: (path: string, body: unknown, { key }: Caller, init: RequestInit = {}) =>
        fetch(baseUrl + path, {
          method: 'POST',
          ...init,
          headers: {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            ...(init.headers as Record<string, string>),
          },
          body: typeof body === 'string' || Buffer.isBuffer(body) ? (body as string) : JSON.stringify(body),
        }),
      setConfig: (text: string) => writeFileSync(file, text),
    } satisfies Partial<GatewayUnderTest>);
  });
  return gateway;
}

/** Waits until no hold is pending and the settled holds are `nanos` in total. */
export async function expectSettledAt(gateway: GatewayUnderTest, { tenantId }: Caller, nanos: bigint) {
  await eventually(async () => {
    const { pendingNanos, pendingHolds, settledNanos, holdRowsPendingNanos, holdRowsSettledNanos } =
      await gateway.snapshot(tenantId);
    expect({ pendingNanos, pendingHolds, settledNanos }).toEqual({
      pendingNanos: 0n,
      pendingHolds: 0,
      settledNanos: nanos,
    });
    expect({ holdRowsPendingNanos, holdRowsSettledNanos }).toEqual({
      holdRowsPendingNanos: 0n,
      holdRowsSettledNanos: nanos,
    });
  });
}

async function newCaller(
  gateway: GatewayUnderTest,
  { nanos = 1_000n * 100n * NANOS_PER_CENT, profile = 'default', plan = 'default', models }: CallerOptions = {},
): Promise<Caller> {
  const tenantId = newId('ten');
  const { value: key, hash } = mintCredential('key');
  const record: CredentialRecord = {
    hash,
    kind: 'key',
    id: newId('key'),
    tenantId,
    plan,
    profile,
    scopes: [],
    expiresAtMs: null,
    revokedAtMs: null,
    version: 1,
    ...(models && { models }),
  };
  await gateway.credentials.put([record]);
  await gateway.admission.applyBalanceUpdates([
    { tenantId, version: 1n, balanceNanos: nanos, releases: [], suspended: false },
  ]);
  return {
    tenantId,
    keyId: record.id,
    key,
    record,
    openai: new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 }),
  };
}

@Global()
@Module({})
class Seams {}

function seamsModule(seams: [abstract new () => object, object][]): DynamicModule {
  const providers = seams.map(([provide, useValue]) => ({ provide, useValue }));
  return { module: Seams, providers, exports: providers };
}
