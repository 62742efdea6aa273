import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import { mintCredential, SCOPES, type Scope } from '@tollgate/contracts';
import { CredentialStore, PostgresCredentialStore } from '@tollgate/credentials';
import type { Messages } from '@tollgate/messaging';
import { MessagesModule } from '@tollgate/messaging/nest';
import { ConfigSource, globalModule, Health, provide, readConfigFile, type TollgateConfig } from '@tollgate/runtime';
import { eventually, PATIENT_CALL_MS, useTestDatabase, type TestDatabase } from '@tollgate/testing';
import { join } from 'node:path';
import { AuthModule } from '../../apps/auth/src';
import { BillingModule, type BillingOptions } from '../../apps/billing/src';
import { KeyActivity } from '../../apps/gateway/src/activity/key-activity';
import { Changes } from '../../apps/console/src/access/changes';
import { OperatorLinks } from '../../apps/console/src/access/operator-links';
import { OperatorLinksController } from '../../apps/console/src/access/operator-links.controller';
import { Operators } from '../../apps/console/src/access/operators';
import { Erasures } from '../../apps/console/src/access/erasures';
import { People } from '../../apps/console/src/access/people';
import { Recoveries } from '../../apps/console/src/access/recoveries';
import { Mailer } from '../../apps/console/src/http/mailer';
import { Invitations } from '../../apps/console/src/access/invitations';
import { Members } from '../../apps/console/src/access/members';
import { ConsoleDataSource, openConsoleDatabase } from '../../apps/console/src/database';
import { SignIn } from '../../apps/console/src/sign-in/sign-in';
import { createOperatorApp, createPublicApp, GatewayModule, stopOf } from '../../apps/gateway/src';
import { MeteringModule } from '../../apps/metering/src';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.fixture';
import { type Simulator, startSimulator } from '../../apps/simulator/src';
import { PatientMessages } from './patient-messages';

export const OPERATOR_SECRET = 'a-secret-of-the-operator';
export const CONSOLE_ORIGIN = 'https://console.example.com';
const IDEMPOTENCY_SECRET = 'encrypts-the-answers-of-the-tests';
/** Time for the first use of a credential on a busy machine. */
const CALL_TIMEOUT_MS = 15_000;

export interface Services {
  /** `http://127.0.0.1:…` without a path. */
  publicUrl: string;
  operatorUrl: string;
  messages: Messages;
  credentials: CredentialStore;
  admission: AdmissionStore;
  database: TestDatabase;
  /** What the services read from tollgate.yaml. A test may add plans. */
  config: TollgateConfig;
  /** The backend `simulator:`. */
  simulator: Simulator;
  /** Waits until the gateway has published the events of all ended requests. */
  flushUsage(): Promise<unknown>;
  /** Waits until the gateway has reported what keys did. */
  reportActivity(): Promise<void>;
  /** Creates a tenant and a management token that the gateway accepts. */
  tenant(scopes?: readonly Scope[], expiresAt?: string): Promise<{ tenantId: string; token: string; tokenId: string }>;
  close(): Promise<void>;
}

class FileConfig extends ConfigSource {
  readonly current;
  constructor(file: string) {
    super();
    this.current = readConfigFile(file, {});
  }
  addCheck(): void {}
  onChange(): void {}
  close(): void {}
}

/**
 * Starts auth, metering and billing for one test file, with seams on a real PostgreSQL, and the management and the
 * operator API on real ports.
 * @param configFile by default the tollgate.yaml that users get
 */
export function useServices(
  billing: Partial<BillingOptions> = {},
  configFile = () => join(__dirname, '../../tollgate.yaml'),
): Services {
  const services = {} as Services;
  afterAll(() => services.close());
  const database = useTestDatabase();
  beforeAll(async () => Object.assign(services, await startServices(database, billing, configFile())));
  return services;
}

async function startServices(
  database: TestDatabase,
  billing: Partial<BillingOptions>,
  configFile: string,
): Promise<Services> {
  const { url } = database;
  const messages = new PatientMessages({ url, applicationName: 'services-test-messages' });
  const reads = { applicationName: 'services-test-credentials', callTimeoutMs: CALL_TIMEOUT_MS };
  const credentials = new PostgresCredentialStore({ url, ...reads });
  const admission = new PostgresAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS });
  await Promise.all([credentials.start(), admission.start()]);
  const config = new FileConfig(configFile);
  const simulator = await startSimulator({});
  const seams = globalModule([
    provide(CredentialStore, credentials),
    provide(AdmissionStore, admission),
    provide(ConfigSource, config),
  ]);
  const databaseUrl = url;
  const root = {
    module: class Root {},
    imports: [
      MessagesModule.of(messages),
      seams,
      AuthModule.register({ databaseUrl }),
      MeteringModule.register({ databaseUrl, prices: ANY_PRICE, usageKeptMonths: null }),
      BillingModule.register({
        databaseUrl,
        thresholdsPercent: () => config.current.budgets.thresholdsPercent,
        currency: () => config.current.currency,
        ...billing,
      }),
      {
        module: class ConsoleLinks {},
        controllers: [OperatorLinksController],
        providers: [
          ...[OperatorLinks, Operators, Invitations, Members, Changes, Erasures, People, Recoveries],
          { provide: Mailer, useValue: { isConfigured: false } },
          { provide: ConsoleDataSource, useFactory: () => openConsoleDatabase(databaseUrl) },
          // Without its pages and sign-in, which these tests do not use.
          { provide: SignIn, useValue: { origin: CONSOLE_ORIGIN } },
        ],
      },
      GatewayModule.register({ simulatorUrl: simulator.url, idempotency: { secrets: [IDEMPOTENCY_SECRET] } }),
    ],
  };
  const front = await createPublicApp(root);
  await front.listen(0, '127.0.0.1');
  const health = new Health();
  health.state = 'serving';
  const operator = await createOperatorApp({ messages, config, admission }, { secrets: [OPERATOR_SECRET], health });
  await operator.listen(0, '127.0.0.1');
  return {
    publicUrl: await front.getUrl(),
    operatorUrl: await operator.getUrl(),
    messages,
    credentials,
    admission,
    database,
    config: config.current,
    simulator,
    flushUsage: () => stopOf(front).flushUsage(),
    reportActivity: () => front.get(KeyActivity, { strict: false }).report(),
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
      // As at the end of a program. Otherwise an unused connection of a client would delay this by more than a minute.
      await stopOf(front).cutOff();
      await Promise.all([front.close(), operator.close()]);
      await messages.close();
      await this.simulator.close();
      await Promise.all([credentials.close(), admission.close()]);
    },
  };
}
