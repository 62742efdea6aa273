import { NestFactory } from '@nestjs/core';
import {
  mintCredential,
  RequestError,
  UnavailableError,
  type CredentialKind,
  type ReplyOf,
  type RequestOf,
  type Subject,
  type TenantUpdate,
} from '@tollgate/contracts';
import { CredentialStore, PostgresCredentialStore } from '@tollgate/credentials';
import { PostgresMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import {
  ConfigSource,
  globalModule,
  provide,
  type LimitsConfig,
  type ModelConfig,
  type TollgateConfig,
} from '@tollgate/runtime';
import { PATIENT_CALL_MS, useTestDatabase, type TestDatabase } from '@tollgate/testing';
import { AuthModule } from './auth.module';
import { Projector } from './project/projector';

const limits: LimitsConfig = { requestsPerMinute: 60, tokensPerMinute: 1_000, concurrency: 4 };
const profile = (id: string) => ({ id, models: ['*'], limits, monthlyBudgetCents: null });

/** Two plans with different profiles. */
class TwoPlans extends ConfigSource {
  current: TollgateConfig = {
    currency: 'USD',
    models: ['m-1', 'm-2'].map((id) => ({ id }) as ModelConfig),
    plans: [
      { id: 'free', limits, monthlyBudgetCents: null, profiles: [profile('small'), profile('batch')] },
      { id: 'pro', limits, monthlyBudgetCents: null, profiles: [profile('large')] },
    ],
    budgets: { thresholdsPercent: [50, 80, 100] },
  };
  addCheck(): void {}
  onChange(): void {}
  close(): void {}
}

/** The changes that billing was asked to bring into force, and did, and the tenants that it erased or did not. */
export interface FakeBilling {
  isAway: boolean;
  actedOn: TenantUpdate[];
  erased: string[];
  notErased: string[];
}

export interface RunningAuth {
  request<S extends Subject>(subject: S, request: RequestOf<S>, options?: { deadlineMs: number }): Promise<ReplyOf<S>>;
  /** The error code of the refusal. */
  refusal<S extends Subject>(subject: S, request: RequestOf<S>): Promise<string>;
  /** A new tenant's id. */
  tenant(plan?: string): Promise<string>;
  /** The credential store as another process, a gateway, sees it. */
  edge: CredentialStore;
  billing: FakeBilling;
  projector: Projector;
  config: TollgateConfig;
  close(): Promise<void>;
}

/**
 * The real auth service on real implementations of all its seams (PostgreSQL by default), and a gateway's view of the
 * credential store.
 */
export async function startAuth(
  url: string,
  openStore: (name: string) => CredentialStore = (applicationName) =>
    new PostgresCredentialStore({ url, applicationName, callTimeoutMs: PATIENT_CALL_MS }),
): Promise<RunningAuth> {
  const messages = new PostgresMessages({ url, applicationName: 'auth-test-messages' });
  const store = openStore('auth-test-credentials');
  const edge = openStore('auth-test-edge');
  const config = new TwoPlans();
  await Promise.all([store.start(), edge.start()]);
  const billing: FakeBilling = { isAway: false, actedOn: [], erased: [], notErased: [] };
  messages.handle('billing.tenants.tell', async (update) => {
    if (billing.isAway) throw new UnavailableError('the admission store is unavailable');
    billing.actedOn.push(update);
    return { told: true };
  });
  messages.handle('billing.tenants.erase', async ({ tenantId }) => {
    (billing.isAway ? billing.notErased : billing.erased).push(tenantId);
    if (billing.isAway) throw new UnavailableError('the database is unavailable');
    return { erased: true };
  });
  const seams = globalModule([provide(CredentialStore, store), provide(ConfigSource, config)]);
  const imports = [MessagesModule.of(messages), seams, AuthModule.register({ databaseUrl: url })];
  const app = await NestFactory.createMicroservice(
    { module: class Root {}, imports },
    { strategy: new MessagesServer(messages), logger: false },
  );
  await app.listen();
  const request: RunningAuth['request'] = (subject, body, options = { deadlineMs: PATIENT_CALL_MS }) =>
    messages.request(subject, body, options);
  return {
    request,
    edge,
    billing,
    config: config.current,
    projector: app.get(Projector, { strict: false }),
    async refusal(subject, body) {
      const error = await request(subject, body).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (!(error instanceof RequestError)) throw new Error(`not refused, but answered: ${String(error)}`);
      return error.code;
    },
    tenant: async (plan) => (await request('auth.tenants.create', { name: 'Acme', ...(plan ? { plan } : {}) })).id,
    async close() {
      await app.close();
      await messages.close();
      await Promise.all([store.close(), edge.close()]);
    },
  };
}

/** Runs the service on a database of the calling test file, from its first test to its last. */
export function useAuth(): { auth: RunningAuth; database: TestDatabase } {
  const auth = {} as RunningAuth;
  // Before the database's own hook: hooks run in the order of their declaration.
  afterAll(() => auth.close());
  const database = useTestDatabase();
  beforeAll(async () => Object.assign(auth, await startAuth(database.url)));
  return { auth, database };
}

/** The part of a freshly minted credential that the gateway sends. */
export function minted(kind: CredentialKind): { hash: string; last4: string } {
  const { hash, last4 } = mintCredential(kind);
  return { hash, last4 };
}
