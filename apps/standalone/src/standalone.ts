import { type DynamicModule, Module } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { MIGRATIONS as ADMISSION } from '@tollgate/admission';
import { AuthModule, MIGRATIONS as AUTH } from '@tollgate/auth';
import { BillingModule, MIGRATIONS as BILLING } from '@tollgate/billing';
import { MIGRATIONS as CREDENTIALS } from '@tollgate/credentials';
import { readyJson, readyText } from '@tollgate/cli';
import { createOperatorApp, createPublicApp, cutOff, drain, flushUsage, GatewayModule } from '@tollgate/gateway';
import { MeteringModule, MIGRATIONS as METERING } from '@tollgate/metering';
import { migrate, startEmbeddedPostgres } from '@tollgate/postgres';
import { FileConfigSource, logger } from '@tollgate/runtime';
import { startSimulator } from '@tollgate/simulator';
import { type AddressInfo } from 'node:net';
import { Client } from 'pg';
import { createDemoOnce } from './demo';
import { flushBooks } from './flush-books';
import { openSeams, type Seams, SeamsModule } from './seams.module';
import { operatorSecret, type StandaloneSettings, writeOperatorFile } from './settings';
import { explainDatabase, explainListen, StartError } from './start-error';

const OPERATOR_HOST = '127.0.0.1';
const MIN_SERVER_VERSION = 16;
const CONNECT_TIMEOUT_MS = 5_000;

export interface Standalone {
  readyJson: string;
  readyText: string;
  /** Requests finish, books are flushed, the database stops. */
  stop(): Promise<void>;
}

@Module({})
class StandaloneModule {
  static register(databaseUrl: string, seams: Seams, simulatorUrl: string): DynamicModule {
    return {
      module: StandaloneModule,
      imports: [
        SeamsModule.register(seams),
        AuthModule.register({ databaseUrl }),
        MeteringModule.register({ databaseUrl }),
        BillingModule.register({ databaseUrl }),
        GatewayModule.register({ simulatorUrl }),
      ],
    };
  }
}

/**
 * All services in this process, in the order in which they need each other; what was started is taken down in the opposite order, also when a later step
 * fails. Rejects with StartError or ConfigError for what the operator can mend.
 */
export async function startStandalone(settings: StandaloneSettings): Promise<Standalone> {
  const takeDown: (() => Promise<unknown> | void)[] = [];
  const stop = async () => {
    for (const step of takeDown.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        logger('standalone').error({ err: error }, 'a step of the shutdown failed; the others go on');
      }
    }
  };
  try {
    return { ...(await start(settings, takeDown)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  settings: StandaloneSettings,
  takeDown: (() => Promise<unknown> | void)[],
): Promise<Omit<Standalone, 'stop'>> {
  const secret = operatorSecret(settings);
  const config = new FileConfigSource(settings.configFile, process.env);
  takeDown.push(() => config.close());
  const databaseUrl = await openDatabase(settings, takeDown);

  const simulator = await startSimulator({});
  takeDown.push(() => simulator.close());

  const seams = openSeams(databaseUrl, config);
  takeDown.push(
    () => seams.admission.close(),
    () => seams.credentials.close(),
    () => seams.messages.close(),
  );
  await Promise.all([seams.admission.start(), seams.credentials.start()]);

  const app = await createPublicApp(StandaloneModule.register(databaseUrl, seams, simulator.url));
  takeDown.push(
    () => app.close(),
    () => seams.messages.stopConsuming(),
    // What was settled goes through metering into the books while their consumers still run; what does not make it in time waits in its hold.
    () => flushBooks(seams.admission),
    () => flushUsage(app),
    () => endRequests(app, settings.drainTimeoutMs),
  );

  const operatorApp = await createOperatorApp(seams, {
    secret,
    ready: async () => void (await seams.admission.snapshot({ limit: 1 })),
  });
  takeDown.push(() => operatorApp.close());
  const operatorUrl = await listen(operatorApp, OPERATOR_HOST, settings.operatorPort, 'TOLLGATE_OPERATOR_PORT');
  const publicUrl = await listen(app, settings.host, settings.port, 'TOLLGATE_PORT');
  // Only when nothing can stand in the way any more: its secrets are shown this once.
  const demo = settings.demo ? await createDemoOnce(databaseUrl, { url: operatorUrl, secret }) : null;
  writeOperatorFile(settings, operatorUrl, secret);

  const addresses = {
    inferenceUrl: `${publicUrl}/v1`,
    managementUrl: `${publicUrl}/_api/v1`,
    operatorUrl,
    docsUrl: `${publicUrl}/docs`,
    operatorSecret: secret,
  };
  const model =
    config.current.models.find((candidate) => candidate.kind === 'chat')?.id ?? config.current.models[0]!.id;
  return { readyJson: readyJson(addresses, demo), readyText: readyText(addresses, demo, model, 'Ctrl-C stops it.') };
}

/** Running requests finish; those that take too long are ended. */
async function endRequests(app: NestFastifyApplication, timeoutMs: number): Promise<void> {
  if (!(await drain(app, timeoutMs)))
    logger('standalone').warn('requests that did not finish in time are ended, and settled at what was delivered');
  await cutOff(app);
}

/** The embedded server, or the one at DATABASE_URL; migrated. */
async function openDatabase(
  settings: StandaloneSettings,
  takeDown: (() => Promise<unknown> | void)[],
): Promise<string> {
  let url = settings.databaseUrl;
  if (url === null) {
    const server = await startEmbeddedPostgres({ dataDirectory: settings.dataDirectory }).catch((error: Error) => {
      throw new StartError(error.message, { cause: error });
    });
    takeDown.push(() => server.stop());
    if (server.adopted)
      logger('standalone').info('took over the PostgreSQL of a process that ended without stopping it');
    url = server.url;
  }
  try {
    await requireVersion(url);
    for (const { schema, directory } of [AUTH, METERING, BILLING, ADMISSION, CREDENTIALS])
      await migrate({ url, schema, directory });
  } catch (error) {
    throw explainDatabase(error, url);
  }
  return url;
}

/** Before anything is made on it: the migrations use what older servers do not know. */
async function requireVersion(url: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  await client.connect();
  try {
    const { rows } = await client.query<{ number: string; name: string }>(
      `SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS name`,
    );
    if (Number(rows[0]!.number) < MIN_SERVER_VERSION * 10_000) {
      throw new StartError(
        `PostgreSQL ${rows[0]!.name} is too old: Tollgate needs ${MIN_SERVER_VERSION} or newer at DATABASE_URL.`,
      );
    }
  } finally {
    await client.end();
  }
}

/** The base URL, without a slash at its end. */
async function listen(app: NestFastifyApplication, host: string, port: number, setting: string): Promise<string> {
  try {
    await app.listen(port, host);
  } catch (error) {
    throw explainListen(error, host, port, setting);
  }
  const address = app.getHttpServer().address() as AddressInfo;
  // An address that means "all" cannot be called: name this machine.
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${shown}:${address.port}`;
}
