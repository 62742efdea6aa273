import { AdmissionStore, MIGRATIONS as ADMISSION, PostgresAdmissionStore } from '@tollgate/admission';
import { AuthModule, MIGRATIONS as AUTH } from '@tollgate/auth';
import { BillingModule, MIGRATIONS as BILLING } from '@tollgate/billing';
import { readyJson, readyText } from '@tollgate/cli';
import { CONSOLE_PREFIX, MIGRATIONS as CONSOLE } from '@tollgate/console';
import { CredentialStore, MIGRATIONS as CREDENTIALS, PostgresCredentialStore } from '@tollgate/credentials';
import {
  acceptedSecrets,
  createOperatorApp,
  createPublicApp,
  endRequests,
  flushUsage,
  GatewayModule,
  idempotencyOptions,
  listen,
  publicDoor,
} from '@tollgate/gateway';
import { MIGRATIONS as MESSAGES, PostgresMessages } from '@tollgate/messaging';
import { MessagesModule } from '@tollgate/messaging/nest';
import { MeteringModule, MIGRATIONS as METERING } from '@tollgate/metering';
import { migrateSchemas, startEmbeddedPostgres } from '@tollgate/postgres';
import {
  ConfigSource,
  FileConfigSource,
  globalModule,
  Health,
  logger,
  metricsTokensOf,
  openTracer,
  provide,
  StartError,
  type TakeDown,
} from '@tollgate/runtime';
import { startSimulator } from '@tollgate/simulator';
import { openConsole } from './console';
import { createDemoOnce } from './demo';
import { flushBooks } from './flush-books';
import {
  idempotencySecrets,
  OPERATOR_HOST,
  operatorSecret,
  type StandaloneSettings,
  writeOperatorFile,
} from './settings';

/**
 * Runs all services in this process, in the order in which they need each other. Rejects with StartError or ConfigError
 * for faults that the operator can correct.
 */
export async function startStandalone(
  settings: StandaloneSettings,
  takeDown: TakeDown,
): Promise<{ readyJson: string; readyText: string }> {
  const secret = operatorSecret(settings);
  const idempotency = idempotencyOptions(settings, idempotencySecrets(settings));
  const tracer = await openTracer(settings, 'standalone');
  takeDown.add(() => tracer?.close());
  const config = new FileConfigSource(settings.TOLLGATE_CONFIG, process.env);
  takeDown.add(() => config.close());
  const url = await openDatabase(settings, takeDown);

  const simulator = await startSimulator({});
  takeDown.add(() => simulator.close());

  const messages = new PostgresMessages({
    url,
    applicationName: 'tollgate-messages',
    services: ['auth', 'metering', 'billing'],
  });
  const admission = new PostgresAdmissionStore({ url, claims: idempotency.claims });
  const credentials = new PostgresCredentialStore({ url, applicationName: 'tollgate-credentials' });
  takeDown.add(
    () => admission.close(),
    () => credentials.close(),
    () => messages.close(),
  );
  await Promise.all([admission.start(), credentials.start()]);

  const seams = globalModule([
    provide(AdmissionStore, admission),
    provide(CredentialStore, credentials),
    provide(ConfigSource, config),
  ]);
  const trustedProxies = settings.TOLLGATE_TRUSTED_PROXIES;
  const services = [
    AuthModule.register({ databaseUrl: url }),
    MeteringModule.register({
      databaseUrl: url,
      config,
      simulatorUrl: simulator.url,
      tracer,
      usageKeptMonths: settings.TOLLGATE_USAGE_KEPT_MONTHS,
    }),
    BillingModule.register({
      databaseUrl: url,
      thresholdsPercent: () => config.current.budgets.thresholdsPercent,
      currency: () => config.current.currency,
      config,
      invoiceCloseDelayMs: settings.TOLLGATE_INVOICE_CLOSE_MINUTES * 60_000,
      tracer,
    }),
    GatewayModule.register({
      tracer,
      simulatorUrl: simulator.url,
      maxBodyMib: settings.TOLLGATE_MAX_BODY_MIB,
      bodyMemoryMib: settings.TOLLGATE_BODY_MEMORY_MIB,
      trustedProxies,
      ...idempotency.gateway,
    }),
  ];
  const console = await openConsole(settings, { messages, config, databaseUrl: url });
  if (console) takeDown.add(() => console.app.close());
  const app = await createPublicApp(
    { module: class Standalone {}, imports: [MessagesModule.of(messages), seams, ...services] },
    {
      maxConnections: settings.TOLLGATE_MAX_CONNECTIONS,
      trustedProxies,
      mounted: console && { prefix: CONSOLE_PREFIX, handle: console.app.handle },
    },
  );
  takeDown.add(
    // It stops consuming first.
    () => app.close(),
    // Settled usage goes through metering into the books while their consumers still run. Usage that is late waits in
    // its hold.
    () => flushBooks(admission),
    () => flushUsage(app),
    () => endRequests(app, settings.TOLLGATE_DRAIN_SECONDS * 1_000),
  );
  if (console) takeDown.add(() => console.app.endStreams());

  const health = new Health();
  health.depend('postgres', { required: true, check: () => admission.check() });
  const operatorApp = await createOperatorApp(
    { messages, config, admission },
    {
      secrets: acceptedSecrets(secret, settings),
      health,
      hosts: settings.TOLLGATE_OPERATOR_ALLOWED_HOSTS?.split(',') ?? [],
      metricsTokens: metricsTokensOf(settings),
      trustedProxies,
    },
  );
  takeDown.add(() => operatorApp.close());
  const [publicUrl, operatorUrl] = await listen([
    publicDoor(app, settings),
    {
      app: operatorApp,
      host: OPERATOR_HOST,
      port: settings.TOLLGATE_OPERATOR_PORT,
      settings: { host: 'TOLLGATE_OPERATOR_PORT', port: 'TOLLGATE_OPERATOR_PORT' },
    },
  ]);
  // Only when nothing can fail any more, because its secrets are shown only once.
  const demo = settings.TOLLGATE_DEMO ? await createDemoOnce(url, { url: operatorUrl, secret }) : null;
  writeOperatorFile(settings.TOLLGATE_DATA_DIR, operatorUrl, secret);
  takeDown.add(() => (health.state = 'stopping'));
  health.state = 'serving';

  const served = await console?.serveAt(publicUrl);
  const addresses = {
    inferenceUrl: `${publicUrl}/v1`,
    managementUrl: `${publicUrl}/_api/v1`,
    operatorUrl,
    docsUrl: `${publicUrl}/docs`,
    operatorSecret: secret,
    console: served && {
      url: served.url,
      firstOperatorLink: await served.firstOperatorLink(demo?.tenantId ?? null),
    },
  };
  const { models } = config.current;
  const model = (models.find(({ kind }) => kind === 'chat') ?? models[0]!).id;
  return { readyJson: readyJson(addresses, demo), readyText: readyText(addresses, demo, model, 'Ctrl-C stops it.') };
}

/** The embedded server, or the one at DATABASE_URL, migrated. */
async function openDatabase(settings: StandaloneSettings, takeDown: TakeDown): Promise<string> {
  let url = settings.DATABASE_URL;
  if (url === undefined) {
    const dataDirectory = settings.TOLLGATE_DATA_DIR;
    const server = await startEmbeddedPostgres({ dataDirectory, onGivenUp: endWithoutDatabase }).catch(
      (error: Error) => {
        throw new StartError(error.message, { cause: error });
      },
    );
    takeDown.add(() => server.stop());
    if (server.adopted)
      logger('standalone').info('took over the PostgreSQL of a process that ended without stopping it');
    url = server.url;
  }
  const console = settings.TOLLGATE_CONSOLE ? [CONSOLE] : [];
  await migrateSchemas(url, [AUTH, METERING, BILLING, ADMISSION, CREDENTIALS, MESSAGES, ...console]);
  return url;
}

/**
 * Nothing can be served any more, and nothing is lost, because every answer is on disk. The exit code tells the
 * process's supervisor.
 */
function endWithoutDatabase({ message }: Error): void {
  process.stderr.write(`tollgate: The embedded PostgreSQL ended and could not be started again: ${message}\n`);
  process.exit(1);
}
