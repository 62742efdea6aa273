import type { RotationStep } from '@tollgate/messaging';
import { Argument, InvalidArgumentError, type Command } from 'commander';
import { group, leaf } from './leaf';
import { Output } from './output';

const MAX_REPLICATION_FACTOR = 32;

/** The commands that talk to Kafka, and those of the keys of what is said there. What they need is loaded for them alone: it takes longer to load than the others take to run. */
export function addKafkaCommands(program: Command, env: NodeJS.ProcessEnv): void {
  const load = async () => (await import('./kafka-tools.js')).kafkaTools;
  const output = (options: object) => new Output('json' in options);

  const topics = group(program, 'topics', "the distributed form's Kafka topics", 'topics apply', 'topics check');
  leaf(
    topics,
    'apply',
    'create the topics and correct their settings; safe to repeat',
    'topics apply',
    'topics apply --grow-partitions',
  )
    .option(
      '--grow-partitions',
      'add partitions where some are missing: from then on a tenant’s messages may be in another one than its older messages, and overtake them',
    )
    .option(
      '--replication-factor <number>',
      "copies of each partition of a new topic (default: the brokers' own)",
      copies,
    )
    .action(async (options: { growPartitions?: true; replicationFactor?: number }) => {
      const { findBrokers, applyAll } = await load();
      const { growPartitions = false, replicationFactor } = options;
      await applyAll(findBrokers(env), output(options), {
        growPartitions,
        ...(replicationFactor !== undefined && { replicationFactor }),
      });
    });
  leaf(topics, 'check', 'say which topics are missing or wrong; changes nothing', 'topics check').action(
    async (options: object) => {
      const { findBrokers, checkAll } = await load();
      await checkAll(findBrokers(env), output(options));
    },
  );

  const dead = group(
    program,
    'dead',
    'messages that could not be read, and were set aside',
    'dead list',
    'dead replay charges --all',
  );
  leaf(
    dead,
    'list [topic]',
    'those of a topic, or of all, oldest first',
    'dead list',
    'dead list charges --json',
  ).action(async (topic: string | undefined, options: object) => {
    const { findBrokers, listLetters } = await load();
    await listLetters(findBrokers(env), output(options), topic);
  });
  leaf(
    dead,
    'replay <topic> [origins...]',
    'publish messages of a topic again, once what could not read them can',
    'dead replay charges billing/3/1042',
    'dead replay charges --all',
  )
    .option('--all', 'all that were set aside')
    .action(async (topic: string, origins: string[], options: { all?: true }) => {
      const { findBrokers, replayLetters } = await load();
      await replayLetters(findBrokers(env), output(options), { topic, origins, all: options.all ?? false });
    });

  const keys = group(
    program,
    'message-keys',
    'the keys by which services believe each other, a file for each service',
    'message-keys create secrets',
    'message-keys rotate secrets add',
  );
  leaf(
    keys,
    'create <directory>',
    'make the keys that are missing; safe to repeat',
    'message-keys create secrets',
  ).action(async (directory: string, options: object) => (await load()).createKeys(directory, output(options)));
  leaf(
    keys,
    'rotate <directory>',
    'one step to new keys: add (believed), promote (signing), remove (the old ones are over)',
    'message-keys rotate secrets add',
    'message-keys rotate secrets promote',
    'message-keys rotate secrets remove',
  )
    .addArgument(new Argument('<step>').choices(['add', 'promote', 'remove'] satisfies RotationStep[]))
    .action(async (directory: string, step: RotationStep, options: object) =>
      (await load()).rotateKeys(directory, step, output(options)),
    );
}

function copies(text: string): number {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1 || Number(text) > MAX_REPLICATION_FACTOR)
    throw new InvalidArgumentError(`It must be 1 to ${MAX_REPLICATION_FACTOR}.`);
  return Number(text);
}
