import { listen } from '@tollgate/gateway';
import { Health, type TakeDown } from '@tollgate/runtime';
import { startSimulator } from '@tollgate/simulator';
import { books, messagesOfBooks } from '../books';
import { openDatabase } from '../database';
import { flushBooks } from '../flush-books';
import { openOperatorPort } from '../operator-port';
import { openPublicPort } from '../public-port';
import { becomeReady, type ReadyLines } from '../ready';
import type { StandaloneSettings } from '../settings';
import { openBasics, openStores } from '../stores';

/**
 * The only process of an instance with one worker: it serves both ports and keeps the books. Rejects with StartError or
 * ConfigError for faults that the operator can correct.
 */
export async function startAlone(settings: StandaloneSettings, takeDown: TakeDown): Promise<ReadyLines> {
  const basics = await openBasics(settings, takeDown);
  const { config } = basics;
  const databaseUrl = await openDatabase(settings, takeDown);
  const simulator = await startSimulator({});
  takeDown.add('basics', () => simulator.close());
  const simulatorUrl = simulator.url;

  const { admission, seams } = await openStores(settings, takeDown, { url: databaseUrl, config });
  const messages = messagesOfBooks(databaseUrl);
  takeDown.add('connections', () => messages.close());
  const { address, console } = await openPublicPort(settings, takeDown, {
    ...basics,
    messages,
    seams,
    databaseUrl,
    simulatorUrl,
    services: books(settings, basics, { url: databaseUrl, simulatorUrl }),
    // Settled usage goes through metering into the books while their consumers still run. Usage that is late waits in
    // its hold.
    onUsageFlushed: () => flushBooks(admission),
  });
  const health = new Health();
  health.depend('postgres', { required: true, check: () => admission.check() });
  const operatorAddress = await openOperatorPort(settings, takeDown, { messages, config, admission, health });
  const [publicUrl, operatorUrl] = await listen([address, operatorAddress]);
  return becomeReady(settings, takeDown, { databaseUrl, publicUrl, operatorUrl, config, health, console });
}
