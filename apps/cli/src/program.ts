import { Command, Help, type Option } from 'commander';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addBooksCommands } from './books/books-program';
import { addCompletionCommand } from './command/completion';
import type { Context } from './command/context';
import { examples } from './command/leaf';
import { findOperator, OperatorClient } from './command/operator-client';
import { Output } from './command/output';
import { addKeyCommands } from './keys/key-program';
import { addTokenCommands } from './keys/token-program';
import { addBudgetCommands } from './money/budget-program';
import { addMoneyCommands } from './money/money-program';
import { addBackendCommands } from './operators/backend-program';
import { addConfigCommand } from './operators/config-program';
import { addOperatorCommands } from './operators/operator-program';
import { addReconcileCommand } from './reconcile/reconcile-program';
import { addKafkaCommands } from './servers/kafka-commands';
import { addRedisCommands } from './servers/redis-commands';
import { addTenantCommands } from './tenants/tenant-program';
import { addUserCommands } from './tenants/user-program';

const ENVIRONMENT = `
Where it finds Tollgate:
  TOLLGATE_OPERATOR_URL, TOLLGATE_OPERATOR_SECRET   the operator API, and its secret or an operator token
  TOLLGATE_DATA_DIR                                 data directory of a Tollgate on this machine (default: .tollgate)
  KAFKA_BROKERS and the other KAFKA_… settings      only for "topics", and for "dead" of the distributed form
  DATABASE_URL                                      only for "dead" of a standalone form with a server of its own
  REDIS_URL                                         only for "redis load"

Exit codes: 0 done; 1 failed, the books differ, or Tollgate cannot be reached; 2 wrong usage.`;

/** The whole command line. `fail` is called for a negative answer, such as a difference: exit code 1. */
export function tollgate(env: NodeJS.ProcessEnv, fail: () => void): Command {
  const context = (options: object): Context => ({
    output: new Output('json' in options),
    client: new OperatorClient(findOperator(env)),
  });
  const program = new Command('tollgate')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(inOurWords(text)) })
    .configureHelp({ optionDescription })
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
  addMoneyCommands(program, context);
  addBudgetCommands(program, context);
  addKeyCommands(program, context);
  addBackendCommands(program, context);
  addTokenCommands(program, context);
  addReconcileCommand(program, context, fail);
  addOperatorCommands(program, context);
  addUserCommands(program, context);
  addBooksCommands(program, context, fail);
  addConfigCommand(program, env, fail);
  addKafkaCommands(program, env);
  addRedisCommands(program, env);
  addCompletionCommand(program);
  return program;
}

/** As commander writes it. Commander does not say which options a command requires. */
function optionDescription(this: Help, option: Option): string {
  const text = Help.prototype.optionDescription.call(this, option);
  return option.mandatory ? `${text} (required)` : text;
}

/** What commander says about a wrong command line, in the form of our own failures. */
function inOurWords(text: string): string {
  return text
    .replace(/^error: /, 'tollgate: ')
    .replace(/command-argument value '(.*)' is invalid for argument '(\w+)'\./s, "$2 '$1' is invalid.");
}

/** The version of this package, which is the version of Tollgate. */
function version(): string {
  const text = readFileSync(join(__dirname, '../package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
