import { SERVICES, type Service } from '@tollgate/contracts';
import type { RotationStep } from '@tollgate/messaging';
import { Argument, InvalidArgumentError, type Command } from 'commander';
import { group, leaf } from './leaf';
import { Output } from './output';

const MAX_REPLICATION_FACTOR = 32;

/** The commands that talk to Kafka, and those of the keys of what is said there. What they need is loaded for them alone: it takes longer to load than the others take to run. */
export function addKafkaCommands(program: Command, env: NodeJS.ProcessEnv): void {
  const load = async () => (await import('./kafka-tools.js')).kafkaTools;
  const output = (options: object) => new Output('json' in options);

  const topics = group(
    program,
    'topics',
    "the distributed form's Kafka topics, and what its services may do to them",
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
      'add partitions where some are missing: from then on a tenant’s messages may be in another one than its older messages, and overtake them',
    )
    .option(
      '--replication-factor <number>',
      "copies of each partition of a new topic (default: the brokers' own)",
      copies,
    )
    .option('--dry-run', 'change nothing, and say what would be done')
    .option('--users <directory>', 'make the services’ users, by SCRAM-SHA-512: passwords in kafka-<service>-password')
    .option(
      '--principal <service=principal>',
      'who the brokers take a service for (default: User:<service>)',
      addPrincipal,
    )
    .option('--no-rights', 'leave rights alone')
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
  leaf(topics, 'check', 'say which topics and rights are missing or wrong; changes nothing', 'topics check')
    .option(
      '--principal <service=principal>',
      'who the brokers take a service for (default: User:<service>)',
      addPrincipal,
    )
    .option('--no-rights', 'topics alone')
    .action(async (options: RightsOptions) => {
      const { findBrokers, checkAll } = await load();
      const { rights, principal = {} } = options;
      await checkAll(findBrokers(env), output(options), { rights, principals: principal });
    });

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

interface RightsOptions {
  rights: boolean;
  principal?: Partial<Record<Service, string>>;
}

function addPrincipal(text: string, before: RightsOptions['principal'] = {}): RightsOptions['principal'] {
  const [, service, principal] = /^([a-z]+)=([A-Za-z]+:.+)$/.exec(text) ?? [];
  const known = SERVICES.find((each) => each === service);
  if (!known || !principal) throw new InvalidArgumentError('It must be a service and its user: gateway=User:sa-1.');
  return { ...before, [known]: principal };
}

function copies(text: string): number {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1 || Number(text) > MAX_REPLICATION_FACTOR)
    throw new InvalidArgumentError(`It must be 1 to ${MAX_REPLICATION_FACTOR}.`);
  return Number(text);
}
