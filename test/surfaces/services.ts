import { Global, Module, type DynamicModule } from '@nestjs/common';
import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import { mintCredential, SCOPES, type Scope } from '@tollgate/contracts';
import { CredentialStore, PostgresCredentialStore } from '@tollgate/credentials';
import { Messages, PostgresMessages } from '@tollgate/messaging';
import { ConfigSource, Health, readConfigFile } from '@tollgate/runtime';
import { eventually, useTestDatabase, type TestDatabase } from '@tollgate/testing';
import { join } from 'node:path';
import { AuthModule } from '../../apps/auth/src';
import { BillingModule, type BillingOptions } from '../../apps/billing/src';
import { createOperatorApp, createPublicApp, flushUsage, GatewayModule } from '../../apps/gateway/src';
import { MeteringModule } from '../../apps/metering/src';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.suite';
import { type Simulator, startSimulator } from '../../apps/simulator/src';

export const OPERATOR_SECRET = 'a-secret-of-the-operator';
/** Of a credential's first use, on a machine that does much else. */
const READ_TIMEOUT_MS = 15_000;

export interface Services {
  /** `http://127.0.0.1:…`, without a path. */
  publicUrl: string;
  operatorUrl: string;
  messages: Messages;
  credentials: CredentialStore;
  database: TestDatabase;
  /** What `simulator:` stands for. */
  simulator: Simulator;
  /** All that the gateway has to tell of requests that have ended is told. */
  flushUsage(): Promise<unknown>;
  /** A tenant and a management token of it, in force at the edge. */
  tenant(scopes?: readonly Scope[], expiresAt?: string): Promise<{ tenantId: string; token: string; tokenId: string }>;
  close(): Promise<void>;
}

class FileConfig extends ConfigSource {
  readonly current = readConfigFile(join(__dirname, '../../tollgate.yaml'), {});
  addCheck(): void {}
  onChange(): void {}
  close(): void {}
}

@Global()
@Module({})
class Seams {
  static of(seams: [abstract new () => object, object][]): DynamicModule {
    const providers = seams.map(([provide, useValue]) => ({ provide, useValue }));
    return { module: Seams, providers, exports: providers };
  }
}

/** Auth, metering and billing as they are, on real Postgres seams, with the management and the operator API on real ports: for one test file. */
export function useServices(billing: Partial<BillingOptions> = {}): Services {
  const services = {} as Services;
  afterAll(() => services.close());
  const database = useTestDatabase();
  beforeAll(async () => Object.assign(services, await startServices(database, billing)));
  return services;
}

async function startServices(database: TestDatabase, billing: Partial<BillingOptions>): Promise<Services> {
  const { url } = database;
  const messages = new PostgresMessages({ url, applicationName: 'services-test-messages' });
  const reads = { applicationName: 'services-test-credentials', readTimeoutMs: READ_TIMEOUT_MS };
  const credentials = new PostgresCredentialStore({ url, ...reads });
  const admission = new PostgresAdmissionStore({ url });
  await Promise.all([credentials.start(), admission.start()]);
  const config = new FileConfig();
  const simulator = await startSimulator({});
  const seams = Seams.of([
    [Messages, messages],
    [CredentialStore, credentials],
    [AdmissionStore, admission],
    [ConfigSource, config],
  ]);
  const databaseUrl = url;
  const front = await createPublicApp({
    module: class Root {},
    imports: [
      seams,
      AuthModule.register({ databaseUrl }),
      MeteringModule.register({ databaseUrl, prices: ANY_PRICE }),
      BillingModule.register({
        databaseUrl,
        thresholdsPercent: () => config.current.budgets.thresholdsPercent,
        currency: () => config.current.currency,
        ...billing,
      }),
      GatewayModule.register({ simulatorUrl: simulator.url }),
    ],
  });
  await front.listen(0, '127.0.0.1');
  const health = new Health();
  health.state = 'serving';
  const operator = await createOperatorApp({ messages, config }, { secret: OPERATOR_SECRET, health });
  await operator.listen(0, '127.0.0.1');
  await messages.start();
  return {
    publicUrl: await front.getUrl(),
    operatorUrl: await operator.getUrl(),
    messages,
    credentials,
    database,
    simulator,
    flushUsage: () => flushUsage(front),
    async tenant(scopes = SCOPES, expiresAt) {
      const { id: tenantId } = await messages.request('auth.tenants.create', { name: 'Acme' });
      const { value: token, hash, last4 } = mintCredential('token');
      const fields = { tenantId, name: 'test', hash, last4, scopes: [...scopes], ...(expiresAt && { expiresAt }) };
      const { id: tokenId } = await messages.request('auth.tokens.create', fields);
      await eventually(async () => expect(await credentials.lookup(hash)).not.toBeNull());
      return { tenantId, token, tokenId };
    },
    async close(this: Services) {
      await messages.stopConsuming();
      await Promise.all([front.close(), operator.close()]);
      await messages.close();
      await this.simulator.close();
      await Promise.all([credentials.close(), admission.close()]);
    },
  };
}
