import { MAX_COMPARED_HOURS, SCOPES } from '@tollgate/contracts';
import { Command, InvalidArgumentError, Option } from 'commander';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addBackendCommands } from './operators/backend-program';
import { addBudgetCommands } from './money/budget-program';
import { addBooksCommands } from './books/books-program';
import * as commands from './commands';
import { addCompletionCommand } from './command/completion';
import type { CheckOptions } from './operators/config-check';
import { addKafkaCommands } from './servers/kafka-commands';
import { UsageFailure } from './command/failure';
import { addKeyCommands } from './keys/key-program';
import { examples, group, leaf } from './command/leaf';
import { addMoneyCommands } from './money/money-program';
import { addOperatorCommands } from './operators/operator-program';
import { findOperator, OperatorClient } from './command/operator-client';
import { Output } from './command/output';
import { reconcile } from './reconcile/reconcile';
import { reconcileBackends } from './reconcile/reconcile-backends';
import { addRedisCommands } from './servers/redis-commands';
import { DEFAULT_NAME, pick } from './command/options';
import { scopesOf } from './command/scopes';
import { addTenantCommands } from './tenants/tenant-program';
import { addUserCommands } from './tenants/user-program';

const DEFAULT_ENTRIES = 20;
const MAX_ENTRIES = 200;
const DEFAULT_HOURS = 24;

const ENVIRONMENT = `
Where it finds Tollgate:
  TOLLGATE_OPERATOR_URL, TOLLGATE_OPERATOR_SECRET   the operator API, and its secret or an operator token
  TOLLGATE_DATA_DIR                                 data directory of a Tollgate on this machine (default: .tollgate)
  KAFKA_BROKERS and the other KAFKA_… settings      only for "topics" and "dead"
  REDIS_URL                                         only for "redis load"

Exit codes: 0 done; 1 failed, the books differ, or Tollgate cannot be reached; 2 wrong usage.`;

/** The whole command line. `fail` is called for a negative answer, such as a difference: exit code 1. */
export function tollgate(env: NodeJS.ProcessEnv, fail: () => void): Command {
  const context = (options: object): commands.Context => ({
    output: new Output('json' in options),
    client: new OperatorClient(findOperator(env)),
  });
  const program = new Command('tollgate')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(inOurWords(text)) })
    .showHelpAfterError('Add --help for the arguments and examples.')
    .version(version(), '--version', 'print the version')
    .description('Operates Tollgate: tenants, prepaid credit, keys, tokens, and the proof of the books.')
    .addHelpText(
      'after',
      examples(
        'tenant create acme',
        'credit add ten_01k… 25.00',
        'key create ten_01k… production',
        'reconcile --json',
      ) + ENVIRONMENT,
    );

  addTenantCommands(program, context);

  const credit = group(program, 'credit', 'prepaid credit', 'credit add ten_01k… 10.00', 'credit show ten_01k…');
  leaf(
    credit,
    'show <tenant>',
    'show the balance, the latest ledger entries and receipts',
    'credit show ten_01k…',
    'credit show ten_01k… --entries 200 --json',
  )
    .option('--entries <number>', 'number of ledger entries, 1 to 200', parseEntries, DEFAULT_ENTRIES)
    .action((id: string, options: { entries: number }) => commands.showCredit(context(options), id, options.entries));

  addMoneyCommands(credit, context);
  addBudgetCommands(program, context);

  addKeyCommands(program, context);
  addBackendCommands(program, context);

  const token = group(
    program,
    'token',
    'management tokens (fma_…)',
    'token create ten_01k… ops',
    'token list ten_01k…',
  );
  leaf(
    token,
    'create <tenant> [name]',
    'create a token; it is shown only once',
    'token create ten_01k… ops --scopes usage:read,billing:read',
  )
    .addOption(
      new Option('--scopes <list>', 'comma-separated scopes')
        .default([...SCOPES], SCOPES.join(','))
        .argParser(scopesOf(SCOPES)),
    )
    .option('--expires-at <time>', 'ISO 8601 date or timestamp, UTC (default: never)')
    .action((id: string, name: string | undefined, options: { scopes: string[]; expiresAt?: string }) =>
      commands.createToken(context(options), id, {
        name: name ?? DEFAULT_NAME,
        scopes: options.scopes,
        ...pick(options, 'expiresAt'),
      }),
    );
  leaf(token, 'list <tenant>', 'list the tokens of a tenant, newest first', 'token list ten_01k…').action(
    (id: string, options: object) => commands.listTokens(context(options), id),
  );
  leaf(
    token,
    'revoke <tenant> <token>',
    'revoke a token; it takes effect within a second',
    'token revoke ten_01k… tok_01k…',
  ).action((id: string, tokenId: string, options: object) => commands.revoke(context(options), 'token', id, tokenId));

  leaf(
    program,
    'reconcile',
    'prove from the stores that usage, charges and ledger agree; exit code 1 if they differ',
    'reconcile',
    'reconcile --json',
    'reconcile --backends --hours 48',
    'reconcile --repair',
  )
    .option('--backends', "compare the books with the engines' own counters instead; exit code 1 if they drift apart")
    .option('--hours <n>', `with --backends: how many hours to look back (default: ${DEFAULT_HOURS})`, parseHours)
    .option('--repair', 'show how the admission store differs from the books, ask, and restore it from the books')
    .option('--yes', 'with --repair: do not ask')
    .action(async (options: { backends?: boolean; hours?: number; repair?: boolean; yes?: boolean }) => {
      if (options.hours !== undefined && !options.backends) throw new UsageFailure('--hours needs --backends.');
      if (options.yes && !options.repair) throw new UsageFailure('--yes needs --repair.');
      if (options.repair && options.backends) throw new UsageFailure('Give only one of --repair and --backends.');
      const ok = options.backends
        ? await reconcileBackends(context(options), options.hours ?? DEFAULT_HOURS)
        : await reconcile(context(options), { repair: options.repair === true, yes: options.yes === true });
      if (!ok) fail();
    });

  addOperatorCommands(program, context);
  addUserCommands(program, context);
  addBooksCommands(program, context, fail);

  const config = group(program, 'config', 'the configuration file', 'config check');
  leaf(
    config,
    'check [file]',
    'check a configuration file, and ask a running Tollgate whether it would accept it',
    'config check',
    'config check /etc/tollgate/tollgate.yaml',
    'config check deploy/tollgate.yaml --allow-missing-env',
  )
    .option('--allow-missing-env', 'ignore secrets that are missing on this machine')
    .option('--no-server', 'do not ask a running Tollgate')
    .action(async (file: string | undefined, options: CheckOptions & { json?: boolean }) => {
      // Loaded for this command alone, because loading takes longer than the other commands run.
      const { checkConfig } = await import('./operators/config-check.js');
      const path = file ?? (env['TOLLGATE_CONFIG'] || 'tollgate.yaml');
      const how = { ...options, isDefault: file === undefined };
      if (!(await checkConfig(path, env, new Output('json' in options), how))) fail();
    });
  addKafkaCommands(program, env);
  addRedisCommands(program, env);
  addCompletionCommand(program);
  return program;
}

/** What commander says of a wrong command line, in the form of our own failures. */
function inOurWords(text: string): string {
  return text
    .replace(/^error: /, 'tollgate: ')
    .replace(/command-argument value '(.*)' is invalid for argument '(\w+)'\./s, "$2 '$1' is invalid.");
}

/** The version of this package, which is that of Tollgate. */
function version(): string {
  const text = readFileSync(join(__dirname, '../package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function parseEntries(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > MAX_ENTRIES)
    throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_ENTRIES}.`);
  return Number(text);
}

function parseHours(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > MAX_COMPARED_HOURS)
    throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_COMPARED_HOURS}.`);
  return Number(text);
}
