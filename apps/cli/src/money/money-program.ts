import { type Command, InvalidArgumentError } from 'commander';
import type { Context } from '../command/context';
import { group, leaf } from '../command/leaf';
import { parseAmount, parseSignedAmount } from '../command/money';
import * as commands from './money-commands';

const DEFAULT_ENTRIES = 20;
const MAX_ENTRIES = 200;

/** Credit. */
export function addMoneyCommands(program: Command, context: (options: object) => Context): void {
  const credit = group(program, 'credit', 'prepaid credit', 'credit add ten_01k… 10.00', 'credit show ten_01k…');
  leaf(
    credit,
    'show <tenant>',
    'show the balance, the latest ledger entries and invoices',
    'credit show ten_01k…',
    'credit show ten_01k… --entries 200 --json',
  )
    .option('--entries <number>', 'number of ledger entries, 1 to 200', parseEntries, DEFAULT_ENTRIES)
    .action((id: string, options: { entries: number }) => commands.showCredit(context(options), id, options.entries));
  leaf(
    credit,
    'add <tenant>',
    'top up the credit of a tenant',
    'credit add ten_01k… 10.00',
    'credit add ten_01k… 10.00 --ref ch_4711 --source stripe',
  )
    .argument('<amount>', 'currency units, with at most two decimals', amountCents)
    .option('--ref <text>', 'your reference; a repeat with the same one adds nothing (default: a new one)')
    .option('--source <name>', 'the payer (default: manual)')
    .action((id: string, cents: number, options: commands.AddOptions) =>
      commands.addCredit(context(options), id, cents, options),
    );
  leaf(
    credit,
    'refund <tenant>',
    'pay credit back: at most the available credit',
    'credit refund ten_01k… 10.00 --ref re_4711',
    'credit refund ten_01k… 10.00 --ref re_4711 --source stripe --reason "closed account"',
    'credit refund ten_01k… all --ref re_4711 --yes',
  )
    .argument('<amount>', 'currency units, with at most two decimals; or all', orAll(amountCents))
    .requiredOption('--ref <text>', 'your reference; a repeat with the same one pays nothing more')
    .option('--source <name>', 'the payment provider (default: manual)')
    .option('--reason <text>', 'reason, recorded in the books')
    .option('--yes', 'do not ask')
    .action((id: string, cents: number | 'all', options: commands.RefundOptions) =>
      commands.refundCredit(context(options), id, cents, options),
    );
  leaf(
    credit,
    'adjust <tenant>',
    'correct the balance up or down',
    'credit adjust ten_01k… 5.00 --ref ticket-17 --reason "goodwill"',
    'credit adjust ten_01k… -5.00 --ref dispute-3 --reason "chargeback" --allow-debt',
    'credit adjust ten_01k… all --ref end-17 --reason "written off"',
  )
    .argument(
      '<amount>',
      'signed amount with at most two decimals, or all (brings the balance to zero)',
      orAll(signedCents),
    )
    .requiredOption('--ref <text>', 'your reference; a repeat with the same one changes nothing more')
    .requiredOption('--reason <text>', 'reason, recorded in the books')
    .option('--source <name>', 'origin of the correction (default: manual)')
    .option('--allow-debt', 'allow more than the available credit, and a balance below zero')
    .option('--yes', 'with all: do not ask')
    .action((id: string, cents: number | 'all', options: commands.AdjustOptions) =>
      commands.adjustCredit(context(options), id, cents, options),
    );
}

const orAll =
  (parse: (text: string) => number) =>
  (text: string): number | 'all' =>
    text === 'all' ? text : parse(text);

function amountCents(text: string): number {
  return argument(parseAmount, text);
}

function signedCents(text: string): number {
  return argument(parseSignedAmount, text);
}

function argument(parse: (text: string) => number, text: string): number {
  try {
    return parse(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function parseEntries(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > MAX_ENTRIES)
    throw new InvalidArgumentError(`It must be a number from 1 to ${MAX_ENTRIES}.`);
  return Number(text);
}
