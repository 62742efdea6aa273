import { type Command, InvalidArgumentError, Option } from 'commander';
import * as commands from './books-commands';
import type { Context } from '../command/context';
import { UsageFailure } from '../command/failure';
import { compareJournal, showHeads } from './journal';
import { explainKey, explainRequest } from './explain';
import { describeJson, group, leaf } from '../command/leaf';
import { exportUsage, type UsageExport } from './usage-export';

const USAGE_GROUPS = ['model', 'key', 'owner', 'tag', 'backend', 'day', 'hour'];

interface UsageOptions {
  entry?: string;
  request?: string;
  from?: string;
  to?: string;
  groupBy?: string;
  model?: string;
  key?: string;
}

type ContextOf = (options: object) => Context;

/** Usage, and its way into the books. */
export function addBooksCommands(program: Command, context: ContextOf, fail: () => void): void {
  addUsageExport(addUsage(program, context), context);
  addExplain(program, context);
  addInvoices(program, context);
  addJournal(program, context, fail);
}

function addUsage(program: Command, context: ContextOf): Command {
  return leaf(
    program,
    'usage [tenant]',
    'show the usage of a tenant, the requests of a ledger entry, or the path of a request',
    'usage ten_01k… --from 2026-11-01 --group-by model,day',
    'usage --entry ent_01k…',
    'usage --request req_01k… --json',
    'usage --request my-own-id-17',
  )
    .option('--entry <id>', 'list the requests that this ledger entry debits')
    .option('--request <id>', 'show the event, charge, entry and invoice of this request: its id, or your x-request-id')
    .option('--from <time>', 'ISO 8601 date or timestamp, UTC (default: start of this month)')
    .option('--to <time>', 'ISO 8601 date or timestamp, UTC (default: now)')
    .addOption(new Option('--group-by <list>', `comma-separated, of: ${USAGE_GROUPS.join(', ')}`).argParser(groups))
    .option('--model <model>', 'only this model')
    .option('--key <key>', 'only this key')
    .action(async (tenant: string | undefined, options: UsageOptions) => {
      const { entry, request } = options;
      if ([tenant, entry, request].filter((one) => one !== undefined).length !== 1)
        throw new UsageFailure('Give exactly one of: a tenant, --entry, --request.');
      if (entry !== undefined) await commands.usageOfEntry(context(options), entry);
      else if (request !== undefined) await commands.usageOfRequest(context(options), request);
      else await commands.usageOfTenant(context(options), tenant!, options);
    });
}

function addUsageExport(usage: Command, context: ContextOf): void {
  const exporting = leaf(
    usage,
    'export',
    'print the usage of all tenants, or of one, for another system',
    'usage export --from 2026-11-01 --to 2026-12-01 > usage.csv',
    'usage export --step day --format focus --provider "Acme AI" > focus.csv',
    'usage export --tenant ten_01k… --format ndjson',
  );
  describeJson(exporting, 'has no effect here: --format ndjson prints one JSON document per line')
    .option('--from <time>', 'ISO 8601 date or timestamp, UTC, inclusive (default: start of this month)')
    .option('--to <time>', 'ISO 8601 date or timestamp, UTC, exclusive (default: now)')
    .addOption(
      new Option('--step <step>', 'a line for each request, or for each tenant, key, model and hour or day')
        .choices(['request', 'hour', 'day'])
        .default('request'),
    )
    .addOption(
      new Option('--format <format>', 'the form of a line; focus: CSV with the columns of FOCUS')
        .choices(['csv', 'ndjson', 'focus'])
        .default('csv'),
    )
    .option('--tenant <tenant>', 'only this tenant')
    .option('--model <model>', 'only this model')
    .option('--key <key>', 'only this key')
    .option('--provider <name>', 'for focus: the name of the provider (default: Tollgate)')
    .action((_: object, command: Command) =>
      // "usage" itself also has the options --from, --to, --model and --key, and may have taken them.
      exportUsage(context({}), command.optsWithGlobals<UsageExport>()),
    );
}

function addExplain(program: Command, context: ContextOf): void {
  leaf(
    program,
    'explain [request]',
    'show the whole life of a request, or what stands in the way of a key now',
    'explain req_01k…',
    'explain chatcmpl-01k…',
    'explain my-own-id-17 --tenant ten_01k… --json',
    'explain --key key_01k…',
  )
    .option('--key <key>', 'show what this key may do now, and its last refused requests')
    .option('--tenant <tenant>', 'only a request of this tenant; required for a request that is still running')
    .action(async (request: string | undefined, options: { key?: string; tenant?: string }) => {
      const { key, tenant } = options;
      if ((request === undefined) === (key === undefined))
        throw new UsageFailure('Give exactly one of: a request, --key.');
      if (key !== undefined) await explainKey(context(options), key, tenant);
      else await explainRequest(context(options), request!, tenant);
    });
}

function addInvoices(program: Command, context: ContextOf): void {
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
    'list the issued invoices of all tenants, or of one with its open months, newest first',
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
    'invoice void 17 --reason "wrong price" --yes',
  )
    .requiredOption('--reason <text>', 'reason, recorded in the books')
    .option('--yes', 'do not ask')
    .action((number: string, options: { reason: string; yes?: boolean }) =>
      commands.voidInvoice(context(options), number, options),
    );
}

function addJournal(program: Command, context: ContextOf, fail: () => void): void {
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

function groups(text: string): string {
  const unknown = text.split(',').find((name) => !USAGE_GROUPS.includes(name.trim()));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no group "${unknown}". The groups are: ${USAGE_GROUPS.join(', ')}.`);
  return text.replaceAll(' ', '');
}

function month(text: string): string {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError('It must be a month, YYYY-MM.');
  return text;
}
