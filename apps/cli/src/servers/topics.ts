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
import { Failure } from '../command/failure';
import { withBrokers, type Brokers } from './kafka';
import { readUsers } from './kafka-users';
import type { Output } from '../command/output';

export interface ApplyAllOptions {
  growPartitions: boolean;
  replicationFactor?: number;
  /** Whether to set the rights of the services' users. */
  rights: boolean;
  /** The users of services that are not `User:<service>`. */
  principals: Partial<Principals>;
  /** A directory with the services' passwords. Their users are created. */
  users?: string;
  dryRun: boolean;
}

/** Creates and corrects the topics, and the rights of the services' users. Reports each change. Safe to repeat. */
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
    // The topics come last: once they are visible, everything before is in force.
    if (!dryRun) await withBrokers('users_not_applied', () => applyScramUsers(connection, users));
    const made = dryRun ? 'to be created, or its password to be set' : 'has its password';
    lines.push(...users.map(({ name }) => `user ${name}: ${made}`));
    if (rights) {
      const set = () => (dryRun ? findRights(connection, rightsOptions) : applyRights(connection, rightsOptions));
      found = await withBrokers('rights_not_applied', set);
      lines.push(...rightsLines(found, dryRun));
    }
    await withBrokers('topics_not_applied', () => applyTopics(connection, { topicPrefix, print, dryRun, ...options }));
  } catch (error) {
    // Changes before the failure stay.
    for (const line of lines) output.note(line);
    throw error;
  }
  const answer = { ok: true, topics, rights: found ?? null, users: users.map(({ name }) => name) };
  output.answer(answer, lines.join('\n'));
}

/**
 * Names the changes, and counts the rights that stay. A dry run names everything, as a list for setting rights by hand.
 */
function rightsLines(found: readonly FoundRight[] | undefined, dryRun: boolean): string[] {
  if (!found) return ['rights: the brokers check none'];
  const changed = found.filter(({ state }) => dryRun || state !== 'there');
  const words = {
    ...{ there: 'correct', granted: 'granted', taken: 'removed', unknown: 'is needed' },
    ...{ missing: 'to be granted', surplus: 'to be removed' },
  };
  const rest = found.length - changed.length;
  return [
    ...changed.map(({ right, state }) => `right ${right}: ${words[state]}`),
    ...(rest > 0 ? [`rights: ${rest} correct`] : []),
  ];
}

/** Changes nothing. Fails with every topic and right that is missing or wrong. */
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
      `Kafka rights differ from the plan: ${wrong.map(({ right, state }) => `${state}: ${right}`).join('; ')}. ` +
        'Run "tollgate topics apply".',
      'rights_wrong',
    );
  const known = found.some(({ state }) => state !== 'unknown');
  output.answer(
    { ok: true, rights: known ? 'correct' : 'not checked' },
    known ? 'All topics and rights are correct.' : 'All topics are correct.',
  );
}
