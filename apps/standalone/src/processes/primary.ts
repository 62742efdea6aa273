import { NestFactory } from '@nestjs/core';
import { BalanceUpdatesModule, listen, publicAddress } from '@tollgate/gateway';
import { answerWorkers } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import { buildId, Health, STOP_RESERVE_MS, type TakeDown, Workers } from '@tollgate/runtime';
import { startSimulator } from '@tollgate/simulator';
import { books, messagesOfBooks } from '../books';
import { openConsole } from '../console';
import { openDatabase } from '../database';
import { flushBooks } from '../flush-books';
import { openOperatorPort } from '../operator-port';
import { becomeReady, type ReadyLines } from '../ready';
import type { StandaloneSettings } from '../settings';
import { openBasics, openStores } from '../stores';
import type { Setup } from './worker';

/**
 * The first process of an instance with several workers, which serve the public port. It has everything that exists
 * once: the embedded PostgreSQL, the books, the consumers of all topics, the operator port and the simulator. It
 * answers what the workers ask of auth, metering and billing. Work on the books delays no running request, unless it
 * asks this process or waits for PostgreSQL. It delays new connections, which Node deals out here.
 * Null if a signal ended the first worker while it started.
 */
export async function startPrimary(settings: StandaloneSettings, takeDown: TakeDown): Promise<ReadyLines | null> {
  const build = buildId();
  const basics = await openBasics(settings, takeDown);
  const { config } = basics;
  const databaseUrl = await openDatabase(settings, takeDown);
  const simulator = await startSimulator({});
  takeDown.add('basics', () => simulator.close());
  const simulatorUrl = simulator.url;

  const { admission, seams } = await openStores(settings, takeDown, { url: databaseUrl, config });
  const messages = messagesOfBooks(databaseUrl);
  takeDown.add('connections', () => messages.close());
  // Serves no pages: it answers what the operator API asks of the console, and makes the first operator's link.
  const console = await openConsole(settings, { messages, config, databaseUrl });
  if (console) takeDown.add('applications', () => console.app.close());
  const services = books(settings, basics, { url: databaseUrl, simulatorUrl });
  const app = await NestFactory.createMicroservice(
    { module: class Books {}, imports: [MessagesModule.of(messages), seams, ...services, BalanceUpdatesModule] },
    { strategy: new MessagesServer(messages), logger: false, abortOnError: false },
  );
  await app.listen();
  takeDown.add('applications', () => app.close());
  // The workers have ended: their usage goes into the books while the consumers still run.
  takeDown.add('usage', () => flushBooks(admission));

  const health = new Health();
  health.depend('postgres', { required: true, check: () => admission.check() });
  const setup = (): Setup => ({ build, databaseUrl, simulatorUrl, decided: config.decided });
  const workers = new Workers('standalone', settings.TOLLGATE_WORKERS, health, {
    works: true,
    stopTimeoutMs: settings.TOLLGATE_DRAIN_SECONDS * 1_000 + STOP_RESERVE_MS,
    answers: { setup: () => Promise.resolve(setup()), request: answerWorkers(messages) },
  });
  takeDown.add('requests', () => workers.stop());
  const operatorAddress = await openOperatorPort(settings, takeDown, { messages, config, admission, health });
  const [, operatorUrl] = await listen([publicAddress(null, settings), operatorAddress]);
  const publicUrl = (await workers.start()) as string | undefined;
  if (publicUrl === undefined) return null;
  return becomeReady(settings, takeDown, { databaseUrl, publicUrl, operatorUrl, config, health, console });
}
