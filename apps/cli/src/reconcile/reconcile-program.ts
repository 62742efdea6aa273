import { MAX_COMPARED_HOURS } from '@tollgate/contracts';
import { type Command, InvalidArgumentError } from 'commander';
import type { Context } from '../command/context';
import { UsageFailure } from '../command/failure';
import { leaf } from '../command/leaf';
import { reconcile } from './reconcile';
import { reconcileBackends } from './reconcile-backends';

const DEFAULT_HOURS = 24;

/** The proof of the books. `fail` is called where they differ. */
export function addReconcileCommand(program: Command, context: (options: object) => Context, fail: () => void): void {
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
}

function parseHours(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > MAX_COMPARED_HOURS)
    throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_COMPARED_HOURS}.`);
  return Number(text);
}
