import { type Command, InvalidArgumentError } from 'commander';
import * as commands from './books-commands';
import type { Context } from './commands';
import { UsageFailure } from './failure';
import { compareJournal, showHeads } from './journal';
import { group, leaf } from './leaf';

interface UsageOptions {
  entry?: string;
  request?: string;
  from?: string;
  to?: string;
  groupBy?: string;
}

/** Usage, and its way into the books. */
export function addBooksCommands(program: Command, context: (options: object) => Context, fail: () => void): void {
  leaf(
    program,
    'usage [tenant]',
    'show the usage of a tenant, the requests of a ledger entry, or the path of a request',
    'usage ten_01k… --from 2026-11-01 --group-by model,day',
    'usage --entry ent_01k…',
    'usage --request req_01k… --json',
    'usage --request my-own-id-17',
  )
    .option('--entry <id>', 'list the requests that this ledger entry debits')
    .option('--request <id>', 'show the event, charge, entry and receipt of this request: its id, or your x-request-id')
    .option('--from <time>', 'ISO 8601 date or timestamp, UTC (default: start of this month)')
    .option('--to <time>', 'ISO 8601 date or timestamp, UTC (default: now)')
    .option('--group-by <list>', 'comma-separated, of: model, key, day, hour')
    .action(async (tenant: string | undefined, options: UsageOptions) => {
      const { entry, request } = options;
      if ([tenant, entry, request].filter((one) => one !== undefined).length !== 1)
        throw new UsageFailure('Give exactly one of: a tenant, --entry, --request.');
      if (entry !== undefined) await commands.usageOfEntry(context(options), entry);
      else if (request !== undefined) await commands.usageOfRequest(context(options), request);
      else await commands.usageOfTenant(context(options), tenant!, options);
    });

  const invoice = group(
    program,
    'invoice',
    'invoices: one per tenant and month, paid from credit',
    'invoice list',
    'invoice close 2026-10',
  );
  leaf(
    invoice,
    'list [tenant]',
    'list the issued invoices of one tenant or of all, newest first',
    'invoice list ten_01k…',
    'invoice list --month 2026-10',
  )
    .option('--month <month>', 'only those of this month (YYYY-MM)', month)
    .action((tenant: string | undefined, options: { month?: string }) =>
      commands.listInvoices(context(options), tenant, options.month),
    );
  leaf(
    invoice,
    'close',
    'close an ended month now, and all months before it; later charges go to the current month',
    'invoice close 2026-10',
    'invoice close 2026-10 ten_01k…',
  )
    .argument('<month>', 'YYYY-MM, UTC', month)
    .argument('[tenant]', 'only for this tenant')
    .action((period: string, tenant: string | undefined, options: object) =>
      commands.closeMonth(context(options), period, tenant),
    );
  leaf(
    invoice,
    'void <number>',
    'void an invoice and return its amount to the credit',
    'invoice void 17 --reason "wrong price"',
  )
    .requiredOption('--reason <text>', 'reason, recorded in the books')
    .action((number: string, options: { reason: string }) =>
      commands.voidInvoice(context(options), number, options.reason),
    );

  const journal = group(
    program,
    'journal',
    'hashes of the ledger: copies kept elsewhere show whether it was changed',
    'journal heads > heads-2026-11-22.txt',
    'journal compare heads-2026-11-22.txt',
  );
  leaf(
    journal,
    'heads',
    "print the newest entry of each tenant's journal, with its hash",
    'journal heads > heads.txt',
  ).action((options: object) => showHeads(context(options)));
  leaf(
    journal,
    'compare <file>',
    'compare the journal with kept heads, or with a log that has them; exit code 1 if it was changed',
    'journal compare heads.txt',
  ).action(async (file: string, options: object) => {
    if (!(await compareJournal(context(options), file))) fail();
  });
}

function month(text: string): string {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError('It must be a month, YYYY-MM.');
  return text;
}
