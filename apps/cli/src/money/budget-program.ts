import { MAX_THRESHOLDS } from '@tollgate/contracts';
import { type Command, InvalidArgumentError } from 'commander';
import * as commands from './budget-commands';
import type { Context } from '../command/context';
import { group, leaf } from '../command/leaf';
import { parseBudget } from '../command/money';

/** Objects, because Commander changes a null. */
interface Budget {
  cents: number | null | 'default';
}
interface Thresholds {
  percents: number[] | null;
}

/** Monthly budgets (UTC) of tenants and keys. */
export function addBudgetCommands(program: Command, context: (options: object) => Context): void {
  const budget = group(
    program,
    'budget',
    'monthly budgets of tenants and keys (calendar months, UTC)',
    'budget set ten_01k… 100.00',
    'budget show ten_01k…',
  );
  leaf(
    budget,
    'set <tenant>',
    'set the monthly budget of a tenant or of one key; it takes effect within a second, also for running requests',
    'budget set ten_01k… 100.00',
    'budget set ten_01k… 20.00 --key key_01k… --thresholds 50,90',
    'budget set ten_01k… none',
  )
    .argument('<budget>', 'currency units; "none" for no budget; "default" for that of tollgate.yaml', budgetArgument)
    .option('--key <key>', "the budget of this key instead of the tenant's")
    .option(
      '--thresholds <percents>',
      'percentages at which an event is recorded, comma-separated; "default" for those of tollgate.yaml',
      thresholdsArgument,
    )
    .action((id: string, budget: Budget, options: { key?: string; thresholds?: Thresholds }) => {
      const { key, thresholds } = options;
      const rest = { ...(key !== undefined && { key }), ...(thresholds && { thresholds: thresholds.percents }) };
      return commands.setBudget(context(options), id, budget.cents, rest);
    });
  leaf(
    budget,
    'show <tenant>',
    'show the monthly budget of a tenant or of one key, and how much of it is used',
    'budget show ten_01k…',
    'budget show ten_01k… --key key_01k… --json',
  )
    .option('--key <key>', "the budget of this key instead of the tenant's")
    .action((id: string, options: { key?: string }) => commands.showBudget(context(options), id, options.key));
}

function budgetArgument(text: string): Budget {
  try {
    return { cents: parseBudget(text) };
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function thresholdsArgument(text: string): Thresholds {
  if (text === 'default') return { percents: null };
  const percents = text.split(',').map((part) => (/^ *\d{1,3} *$/.test(part) ? Number(part) : Number.NaN));
  const sorted = [...new Set(percents)].sort((a, b) => a - b);
  if (sorted.length > MAX_THRESHOLDS || !sorted.every((percent) => percent >= 1 && percent <= 100))
    throw new InvalidArgumentError(`It must be 1 to ${MAX_THRESHOLDS} whole numbers from 1 to 100, such as 50,80,100.`);
  return { percents: sorted };
}
