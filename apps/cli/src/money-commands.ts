import type { LedgerEntry, TenantRow } from '@tollgate/contracts';
import type { Context } from './commands';
import { formatCents } from './money';
import { printable } from './table';

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

export async function setStatus({ client, output }: Context, tenant: string, how: 'suspend' | 'resume'): Promise<void> {
  const { data } = await client.post<{ data: TenantRow }>(`/tenants/${encodeURIComponent(tenant)}/${how}`);
  output.answer(data, `Tenant ${data.id} (${printable(data.name)}) is ${data.status}.`);
}

export async function refundCredit(
  context: Context,
  tenant: string,
  amountCents: number,
  { ref, source, reason }: RefundOptions,
): Promise<void> {
  const body = { amountCents, ref, ...(source !== undefined && { source }), ...(reason !== undefined && { reason }) };
  await enter(context, tenant, 'refund', body, 'refunded');
}

export async function adjustCredit(
  context: Context,
  tenant: string,
  amountCents: number,
  { ref, reason, source, allowDebt = false }: AdjustOptions,
): Promise<void> {
  const body = { amountCents, ref, reason, allowDebt, ...(source !== undefined && { source }) };
  await enter(context, tenant, 'adjust', body, 'adjusted');
}

async function enter(
  { client, output }: Context,
  tenant: string,
  how: string,
  body: object,
  done: string,
): Promise<void> {
  const { data } = await client.post<Entered>(`/tenants/${encodeURIComponent(tenant)}/credit/${how}`, body);
  const { entry, balanceCents, currency } = data;
  output.answer(
    data,
    `${formatCents(entry.amountCents, currency)} ${done} (ref ${printable(entry.ref)}). Balance: ${formatCents(balanceCents, currency)}.`,
  );
}
