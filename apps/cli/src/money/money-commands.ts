import { formatCents, type BillingSummary, type LedgerEntry, type TenantRow } from '@tollgate/contracts';
import { randomUUID } from 'node:crypto';
import { confirm } from '../command/agrees';
import type { Context } from '../command/context';
import { Failure } from '../command/failure';
import { formatNanos } from '../command/money';
import { tenantPath } from '../command/operator-client';
import { printable, table } from '../command/table';

export interface AddOptions {
  ref?: string;
  source?: string;
}

export interface RefundOptions {
  ref: string;
  source?: string;
  reason?: string;
  yes?: boolean;
}

export interface AdjustOptions {
  ref: string;
  reason: string;
  source?: string;
  allowDebt?: boolean;
  yes?: boolean;
}

interface Entered {
  data: { entry: LedgerEntry; balanceCents: number; created: boolean; currency: string };
}

export async function showCredit({ client, output }: Context, tenant: string, limit: number): Promise<void> {
  const { data } = await client.get<{
    data: Omit<BillingSummary, 'nextCursor'> & { spendableCents: number | null; currency: string };
  }>(tenantPath(tenant, `/credit?limit=${limit}`));
  const { balanceCents, spendableCents, carriedNanos, currency, entries, invoices } = data;
  const entryCells = entries.map(({ createdAt, type, amountCents, source, ref }) => [
    createdAt,
    type,
    formatCents(amountCents, currency),
    source,
    ref,
  ]);
  const invoiceCells = invoices.map(({ period, amountCents, status, accountingNumber }) => [
    period,
    formatCents(amountCents, currency),
    status,
    accountingNumber === null ? '-' : String(accountingNumber),
  ]);
  const text = [
    `Balance:         ${formatCents(balanceCents, currency)}`,
    `Not yet posted:  ${formatNanos(carriedNanos, currency)}`,
    `Spendable now:   ${spendableCents === null ? 'not known at the moment' : formatCents(spendableCents, currency)}`,
    '',
    table(['TIME', 'TYPE', 'AMOUNT', 'SOURCE', 'REF'], entryCells, 'No entries yet.'),
    ...(invoices.length > 0 ? ['', table(['MONTH', 'AMOUNT', 'STATUS', 'NUMBER'], invoiceCells, '')] : []),
  ];
  output.answer(data, text.join('\n'));
}

/** Without a ref from the caller it makes one, which a failure names. */
export async function addCredit(
  context: Context,
  tenant: string,
  amountCents: number,
  { ref = randomUUID(), source }: AddOptions,
): Promise<void> {
  await enter(context, tenant, '', { amountCents, ref, ...(source !== undefined && { source }) }, 'added');
}

export async function refundCredit(
  context: Context,
  tenant: string,
  amountCents: number | 'all',
  { ref, source, reason, yes = false }: RefundOptions,
): Promise<void> {
  const all = 'all available credit';
  const amount = (currency: string) => (amountCents === 'all' ? all : formatCents(amountCents, currency));
  await confirm(() => question(context, tenant, (currency) => `Refund ${amount(currency)}`), { yes });
  const body = { amountCents, ref, ...(source !== undefined && { source }), ...(reason !== undefined && { reason }) };
  await enter(context, tenant, '/refund', body, 'refunded');
}

export async function adjustCredit(
  context: Context,
  tenant: string,
  amountCents: number | 'all',
  { ref, reason, source, allowDebt = false, yes = false }: AdjustOptions,
): Promise<void> {
  if (amountCents === 'all') await confirm(() => question(context, tenant, () => 'Write the balance off'), { yes });
  const body = { amountCents, ref, reason, allowDebt, ...(source !== undefined && { source }) };
  await enter(context, tenant, '/adjust', body, 'adjusted');
}

/** "Refund 5.00 USD of ten_… (Acme), which has a balance of 10.00 USD?" */
async function question({ client }: Context, tenant: string, what: (currency: string) => string): Promise<string> {
  const at = tenantPath(tenant);
  const [{ data: row }, { data: credit }] = await Promise.all([
    client.get<{ data: TenantRow }>(at),
    client.get<{ data: { balanceCents: number; currency: string } }>(`${at}/credit?limit=1`),
  ]);
  const { balanceCents, currency } = credit;
  const balance = `which has a balance of ${formatCents(balanceCents, currency)}`;
  return `${what(currency)} of ${row.id} (${printable(row.name)}), ${balance}?`;
}

/** After a failure with one of these codes the entry may still have been booked. */
const UNSURE = new Set(['unreachable', 'unavailable', 'internal_error']);

/** If it is not known whether the entry was booked, the failure says how to repeat it without booking it twice. */
async function enter(
  { client, output }: Context,
  tenant: string,
  how: '' | '/refund' | '/adjust',
  body: { amountCents: number | 'all'; ref: string },
  done: string,
): Promise<void> {
  let data: Entered['data'];
  try {
    ({ data } = await client.post<Entered>(tenantPath(tenant, `/credit${how}`), body));
  } catch (error) {
    if (!(error instanceof Failure) || !UNSURE.has(error.code)) throw error;
    const repeat = `Repeat it with --ref ${shellQuoted(printable(body.ref))} and the same input: it is booked once.`;
    throw new Failure(`${error.message} ${repeat}`, error.code);
  }
  const { entry, balanceCents, currency, created } = data;
  // For a closed tenant, a refund that finds nothing but the last cent writes it off.
  const what =
    how === '/refund' && entry.type === 'adjustment' ? `written off (${printable(entry.reason ?? '')})` : done;
  // The entry of a refund is negative. "Refunded" says so already.
  const amount = formatCents(how === '/refund' ? -entry.amountCents : entry.amountCents, currency);
  if (!created) {
    output.answer(
      data,
      `${amount} was already ${what} at ${entry.createdAt} (ref ${printable(entry.ref)}). Nothing was changed. ` +
        `Balance after that entry: ${formatCents(balanceCents, currency)}.`,
    );
    return;
  }
  output.answer(
    data,
    `${amount} ${what} (ref ${printable(entry.ref)}). Balance: ${formatCents(balanceCents, currency)}.`,
  );
}

/** Quotes a text as one word of a shell. */
function shellQuoted(text: string): string {
  return /^[\w.:@%+=/,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
