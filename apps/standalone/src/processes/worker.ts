import { listen } from '@tollgate/gateway';
import { type Messages, PostgresMessages, WorkerMessages } from '@tollgate/messaging';
import {
  answerPrimary,
  askForSetup,
  buildId,
  type ConfigSource,
  type DecidedConfig,
  Health,
  requireSameBuild,
  type TakeDown,
} from '@tollgate/runtime';
import { openPublicPort } from '../public-port';
import type { StandaloneSettings } from '../settings';
import { openBasics, openStores } from '../stores';

/** What the primary process gives its workers. */
export interface Setup {
  build: string;
  databaseUrl: string;
  simulatorUrl: string;
  /** The configuration in force. A worker that is started again must not fail at a version that was refused. */
  decided: DecidedConfig;
}

/**
 * One of several processes that share the public port: gateway and console, as a replica of each would be. It consumes
 * nothing and keeps no books.
 */
export async function startWorker(settings: StandaloneSettings, takeDown: TakeDown): Promise<void> {
  const health = new Health();
  const primary = answerPrimary(health);
  const setup = (await askForSetup(primary)) as Setup;
  const { build, databaseUrl, simulatorUrl, decided } = setup;
  requireSameBuild(build, buildId());
  const basics = await openBasics(settings, takeDown, decided);
  const { config } = basics;
  const published = new PostgresMessages({ url: databaseUrl, applicationName: 'tollgate-messages' });
  const messages = new WorkerMessages(published, primary);
  followBooks(config, messages);
  const { admission, seams } = await openStores(settings, takeDown, { url: databaseUrl, config });
  takeDown.add('connections', () => messages.close());
  const { address, console } = await openPublicPort(settings, takeDown, {
    ...basics,
    messages,
    seams,
    databaseUrl,
    simulatorUrl,
  });
  const [publicUrl] = await listen([address]);
  await console?.serveAt(publicUrl);
  health.depend('postgres', { required: true, check: () => admission.check() });
  takeDown.add('announce', () => (health.state = 'stopping'));
  health.state = 'serving';
  primary.tellServing(publicUrl);
}

/** Refuses a changed configuration that the books refuse, as the primary process does. It accepted the present one. */
function followBooks(config: ConfigSource, messages: Messages): void {
  config.addCheck(async ({ currency, plans }) => {
    const profiles = plans.map((plan) => ({ id: plan.id, profiles: plan.profiles.map(({ id }) => ({ id })) }));
    const [keys, books] = await Promise.all([
      messages.request('auth.config.check', { plans: profiles }),
      messages.request('billing.config.check', { currency }),
    ]);
    return [...keys.problems, ...books.problems];
  });
}
