import { listen } from '@tollgate/gateway';
import { type Messages, PostgresMessages, type RequestOptions, WorkerMessages } from '@tollgate/messaging';
import {
  answerPrimary,
  type ConfigSource,
  Health,
  StartError,
  type TakeDown,
  type TollgateConfig,
} from '@tollgate/runtime';
import { openPublicPort } from '../public-port';
import type { StandaloneSettings } from '../settings';
import { openBasics, openStores } from '../stores';
import { buildId, requireSameBuild } from './build-id';

/** For an answer of the primary process during the start. A busy machine may need long. */
const START_DEADLINE_MS = 30_000;

/** What the primary process gives its workers. */
export interface Setup {
  build: string;
  databaseUrl: string;
  simulatorUrl: string;
}

/**
 * One of several processes that share the public port: gateway and console, as a replica of each would be. It consumes
 * nothing and keeps no books.
 */
export async function startWorker(settings: StandaloneSettings, takeDown: TakeDown): Promise<void> {
  const health = new Health();
  const primary = answerPrimary(health);
  const { build, databaseUrl, simulatorUrl } = (await primary.ask('setup', undefined, START_DEADLINE_MS)) as Setup;
  requireSameBuild(build, buildId());
  const basics = await openBasics(settings, takeDown);
  const { config } = basics;
  const { admission, seams } = await openStores(settings, takeDown, { url: databaseUrl, config });
  const published = new PostgresMessages({ url: databaseUrl, applicationName: 'tollgate-messages' });
  const messages = new WorkerMessages(published, primary);
  takeDown.add('connections', () => messages.close());
  const { address, console } = await openPublicPort(settings, takeDown, {
    ...basics,
    messages,
    seams,
    databaseUrl,
    simulatorUrl,
  });
  await followBooks(config, messages);
  const [publicUrl] = await listen([address]);
  await console?.serveAt(publicUrl);
  health.depend('postgres', { required: true, check: () => admission.check() });
  takeDown.add('announce', () => (health.state = 'stopping'));
  health.state = 'serving';
  primary.tellServing(publicUrl);
}

/**
 * Refuses a configuration that the books refuse, as the primary process does. Rejects with StartError if that is the
 * present one: the file has changed since the primary process read it.
 */
async function followBooks(config: ConfigSource, messages: Messages): Promise<void> {
  const problemsOf = async ({ currency, plans }: TollgateConfig, options?: RequestOptions): Promise<string[]> => {
    const profiles = plans.map((plan) => ({ id: plan.id, profiles: plan.profiles.map(({ id }) => ({ id })) }));
    const [keys, books] = await Promise.all([
      messages.request('auth.config.check', { plans: profiles }, options),
      messages.request('billing.config.check', { currency }, options),
    ]);
    return [...keys.problems, ...books.problems];
  };
  const problems = await problemsOf(config.current, { deadlineMs: START_DEADLINE_MS });
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  config.addCheck((next) => problemsOf(next));
}
