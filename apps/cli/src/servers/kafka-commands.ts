import { SERVICES, type Service } from '@tollgate/contracts';
import type { RotationStep } from '@tollgate/messaging';
import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { group, leaf } from '../command/leaf';
import { Output } from '../command/output';

const MAX_REPLICATION_FACTOR = 32;

/**
 * The commands for Kafka, for message keys, and for the quarantined messages of both forms. Their modules load only for
 * them, because loading takes longer than the other commands run.
 */
export function addKafkaCommands(program: Command, env: NodeJS.ProcessEnv): void {
  addTopics(program, env);
  addDead(program, env);
  addMessageKeys(program);
}

const load = async () => (await import('./kafka-tools.js')).kafkaTools;
const output = (options: object) => new Output('json' in options);

function addTopics(program: Command, env: NodeJS.ProcessEnv): void {
  const topics = group(
    program,
    'topics',
    "the distributed form's Kafka topics, and the rights of its services",
    'topics apply',
    'topics check',
  );
  leaf(
    topics,
    'apply',
    'create the topics, correct their settings, and set the rights of the services’ users; safe to repeat',
    'topics apply',
    'topics apply --dry-run',
    'topics apply --principal gateway=User:sa-1 --principal billing=User:sa-2',
  )
    .option(
      '--grow-partitions',
      'add missing partitions; new messages of a tenant may then go to another partition and overtake older ones',
    )
    .option(
      '--replication-factor <number>',
      "copies of each partition of a new topic (default: the brokers' own)",
      copies,
    )
    .option('--dry-run', 'change nothing; show what would be done')
    .option(
      '--users <directory>',
      'create the services’ users (SCRAM-SHA-512), with the passwords in kafka-<service>-password',
    )
    .addOption(principalOption())
    .option('--no-rights', 'do not change rights')
    .action(
      async (
        options: RightsOptions & { growPartitions?: true; dryRun?: true; users?: string; replicationFactor?: number },
      ) => {
        const { findBrokers, applyAll } = await load();
        const { growPartitions = false, dryRun = false, replicationFactor, users, rights, principal = {} } = options;
        await applyAll(findBrokers(env), output(options), {
          ...{ growPartitions, dryRun, rights, principals: principal },
          ...(replicationFactor !== undefined && { replicationFactor }),
          ...(users !== undefined && { users }),
        });
      },
    );
  leaf(topics, 'check', 'show which topics and rights are missing or wrong, without changing them', 'topics check')
    .addOption(principalOption())
    .option('--no-rights', 'check topics only')
    .action(async (options: RightsOptions) => {
      const { findBrokers, checkAll } = await load();
      const { rights, principal = {} } = options;
      await checkAll(findBrokers(env), output(options), { rights, principals: principal });
    });
}

function addDead(program: Command, env: NodeJS.ProcessEnv): void {
  const dead = group(
    program,
    'dead',
    'quarantined messages: unreadable, or without a valid signature',
    'dead list',
    'dead replay charges --all',
  );
  leaf(
    dead,
    'list [topic]',
    'list the quarantined messages of one topic or of all, oldest first',
    'dead list',
    'dead list charges --json',
  ).action(async (topic: string | undefined, options: object) => {
    const { findDeadStore, listLetters } = await load();
    await listLetters(await findDeadStore(env), output(options), topic);
  });
  leaf(
    dead,
    'replay <topic> [origins...]',
    'publish quarantined messages of a topic again, once they can be read',
    'dead replay charges billing/3/1042',
    'dead replay charges --all',
  )
    .option('--all', 'all quarantined messages of the topic')
    .action(async (topic: string, origins: string[], options: { all?: true }) => {
      const { findDeadStore, replayLetters } = await load();
      await replayLetters(await findDeadStore(env), output(options), { topic, origins, all: options.all ?? false });
    });
}

function addMessageKeys(program: Command): void {
  const keys = group(
    program,
    'message-keys',
    'the keys with which services sign their messages, a file for each service',
    'message-keys create secrets',
    'message-keys rotate secrets add',
  );
  leaf(
    keys,
    'create <directory>',
    'create the keys that are missing; safe to repeat',
    'message-keys create secrets',
  ).action(async (directory: string, options: object) => (await load()).createKeys(directory, output(options)));
  leaf(
    keys,
    'rotate <directory>',
    'one step to new keys: add (accept them), promote (sign with them), remove (refuse the old ones)',
    'message-keys rotate secrets add',
    'message-keys rotate secrets promote',
    'message-keys rotate secrets remove',
  )
    .addArgument(new Argument('<step>').choices(['add', 'promote', 'remove'] satisfies RotationStep[]))
    .action(async (directory: string, step: RotationStep, options: object) =>
      (await load()).rotateKeys(directory, step, output(options)),
    );
}

interface RightsOptions {
  rights: boolean;
  principal?: Partial<Record<Service, string>>;
}

const principalOption = () =>
  new Option(
    '--principal <service=principal>',
    'the principal of a service at the brokers (default: User:<service>)',
  ).argParser(addPrincipal);

function addPrincipal(text: string, before: RightsOptions['principal'] = {}): RightsOptions['principal'] {
  const [, service, principal] = /^([a-z]+)=([A-Za-z]+:.+)$/.exec(text) ?? [];
  const known = SERVICES.find((each) => each === service);
  if (!known || !principal) throw new InvalidArgumentError('It must be a service and its user: gateway=User:sa-1.');
  return { ...before, [known]: principal };
}

function copies(text: string): number {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1 || Number(text) > MAX_REPLICATION_FACTOR)
    throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_REPLICATION_FACTOR}.`);
  return Number(text);
}
