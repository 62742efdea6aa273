import {
  applyRights,
  applyScramUsers,
  applyTopics,
  checkTopics,
  DEFAULT_PRINCIPALS,
  findRights,
  type FoundRight,
  type Principals,
} from '@tollgate/messaging';
import { Failure } from './failure';
import { withBrokers, type Brokers } from './kafka';
import { readUsers } from './kafka-users';
import type { Output } from './output';

export interface ApplyAllOptions {
  growPartitions: boolean;
  replicationFactor?: number;
  /** Whether to set what each service's user may do. */
  rights: boolean;
  /** The users of some services, where they are not `User:<service>`. */
  principals: Partial<Principals>;
  /** A directory of the services' passwords: their users are made. */
  users?: string;
  dryRun: boolean;
}

/** Creates and corrects the topics, and what the services' users may do; says what it did to each. Safe to repeat. */
export async function applyAll(
  { connection, topicPrefix }: Brokers,
  output: Output,
  { users: directory, rights, principals, dryRun, ...options }: ApplyAllOptions,
): Promise<void> {
  const users = directory === undefined ? [] : readUsers(directory);
  const rightsOptions = { topicPrefix, principals: { ...DEFAULT_PRINCIPALS, ...principals } };
  const lines: string[] = [];
  const topics: { topic: string; result: string }[] = [];
  const print = (line: string) => {
    const at = line.indexOf(': ');
    topics.push({ topic: line.slice(0, at), result: line.slice(at + 2) });
    lines.push(line);
  };
  let found: FoundRight[] | undefined = [];
  try {
    // The topics come last: once they are seen, what was done before is in force.
    if (!dryRun) await withBrokers('users_not_applied', () => applyScramUsers(connection, users));
    const made = dryRun ? 'to be made, or given its password' : 'has its password';
    lines.push(...users.map(({ name }) => `user ${name}: ${made}`));
    if (rights) {
      const set = () => (dryRun ? findRights(connection, rightsOptions) : applyRights(connection, rightsOptions));
      found = await withBrokers('rights_not_applied', set);
      lines.push(...rightsLines(found, dryRun));
    }
    await withBrokers('topics_not_applied', () => applyTopics(connection, { topicPrefix, print, dryRun, ...options }));
  } catch (error) {
    // What was done before it failed stays done.
    for (const line of lines) output.note(line);
    throw error;
  }
  const answer = { ok: true, topics, rights: found ?? null, users: users.map(({ name }) => name) };
  output.answer(answer, lines.join('\n'));
}

/** What changes, and how much does not; a dry run names everything, as a list for whoever sets rights by hand. */
function rightsLines(found: readonly FoundRight[] | undefined, dryRun: boolean): string[] {
  if (!found) return ['rights: the brokers check none'];
  const changed = found.filter(({ state }) => dryRun || state !== 'there');
  const words = {
    ...{ there: 'as it should be', granted: 'granted', taken: 'taken away', unknown: 'is needed' },
    ...{ missing: 'to be granted', surplus: 'to be taken away' },
  };
  const rest = found.length - changed.length;
  return [
    ...changed.map(({ right, state }) => `right ${right}: ${words[state]}`),
    ...(rest > 0 ? [`rights: ${rest} as they should be`] : []),
  ];
}

/** Changes nothing; fails with every topic and right that is missing or wrong. */
export async function checkAll(
  { connection, topicPrefix }: Brokers,
  output: Output,
  { rights, principals }: Pick<ApplyAllOptions, 'rights' | 'principals'>,
): Promise<void> {
  await withBrokers('topics_wrong', () => checkTopics(connection, { topicPrefix }));
  const options = { topicPrefix, principals: { ...DEFAULT_PRINCIPALS, ...principals } };
  const found = rights ? await withBrokers('rights_wrong', () => findRights(connection, options)) : [];
  const wrong = found.filter(({ state }) => state === 'missing' || state === 'surplus');
  if (wrong.length > 0)
    throw new Failure(
      `Rights at Kafka are not as they must be: ${wrong.map(({ right, state }) => `${state}: ${right}`).join('; ')}: run "tollgate topics apply"`,
      'rights_wrong',
    );
  const known = found.some(({ state }) => state !== 'unknown');
  output.answer(
    { ok: true, rights: known ? 'as they must be' : 'not checked' },
    known ? 'All topics and rights are as they must be.' : 'All topics are as they must be.',
  );
}
