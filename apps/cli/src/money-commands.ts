import type { LedgerEntry } from '@tollgate/contracts';
import { randomUUID } from 'node:crypto';
import type { Context } from './commands';
import { Failure } from './failure';
import { formatCents } from './money';
import { printable } from './table';

export interface AddOptions {
  ref?: string;
  source?: string;
}

export interface RefundOptions {
  ref: string;
  source?: string;
  reason?: string;
}

export interface AdjustOptions {
  ref: string;
  reason: string;
  source?: string;
  allowDebt?: boolean;
}

interface Entered {
  data: { entry: LedgerEntry; balanceCents: number; currency: string };
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
  { ref, source, reason }: RefundOptions,
): Promise<void> {
  const body = { amountCents, ref, ...(source !== undefined && { source }), ...(reason !== undefined && { reason }) };
  await enter(context, tenant, '/refund', body, 'refunded');
}

export async function adjustCredit(
  context: Context,
  tenant: string,
  amountCents: number | 'all',
  { ref, reason, source, allowDebt = false }: AdjustOptions,
): Promise<void> {
  const body = { amountCents, ref, reason, allowDebt, ...(source !== undefined && { source }) };
  await enter(context, tenant, '/adjust', body, 'adjusted');
}

/** After a failure with one of these codes the entry may have been booked all the same. */
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
    ({ data } = await client.post<Entered>(`/tenants/${encodeURIComponent(tenant)}/credit${how}`, body));
  } catch (error) {
    if (!(error instanceof Failure) || !UNSURE.has(error.code)) throw error;
    const repeat = `Repeat it with --ref ${shellQuoted(printable(body.ref))} and the same input: it is booked once.`;
    throw new Failure(`${error.message} ${repeat}`, error.code);
  }
  const { entry, balanceCents, currency } = data;
  output.answer(
    data,
    `${formatCents(entry.amountCents, currency)} ${done} (ref ${printable(entry.ref)}). Balance: ` +
      `${formatCents(balanceCents, currency)}.`,
  );
}

/** Quotes a text as one word of a shell. */
function shellQuoted(text: string): string {
  return /^[\w.:@%+=/,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
