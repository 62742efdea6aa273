import {
  formatCents,
  LAST_CENT_SOURCE,
  NANOS_PER_CENT,
  type BillingSummary,
  type KeyRow,
  type TenantRow,
} from '@tollgate/contracts';
import { confirmTenant } from '../command/agrees';
import { type Context, noteTruncated } from '../command/context';
import { Failure, UsageFailure } from '../command/failure';
import { adjustCredit, refundCredit } from '../money/money-commands';
import { tenantPath } from '../command/operator-client';
import { printable, table } from '../command/table';

export async function createTenant(
  { client, output }: Context,
  wanted: { name: string; plan?: string; externalId?: string },
): Promise<void> {
  const { data } = await client.post<{ data: TenantRow }>('/tenants', wanted);
  output.answer(
    data,
    `Tenant ${data.id} (${printable(data.name)}, plan ${data.plan}) was created.\nGive it credit: tollgate ` +
      `credit add ${data.id} 10.00`,
  );
}

export async function listTenants({ client, output }: Context, externalId?: string): Promise<void> {
  const filter = externalId === undefined ? '' : `?externalId=${encodeURIComponent(externalId)}`;
  const { rows, truncated } = await client.list<TenantRow>(`/tenants${filter}`);
  const cells = rows.map(({ id, name, plan, status, createdAt, externalId: other }) => [
    ...[id, name, plan, status, createdAt],
    other ?? '-',
  ]);
  const empty =
    externalId === undefined
      ? 'There are no tenants yet: tollgate tenant create <name>'
      : 'No tenant has this external id.';
  output.answer(rows, table(['ID', 'NAME', 'PLAN', 'STATUS', 'CREATED', 'EXTERNAL ID'], cells, empty));
  noteTruncated(output, truncated);
}

export async function showTenant({ client, output }: Context, tenant: string): Promise<void> {
  const { data } = await client.get<{ data: TenantRow }>(tenantPath(tenant));
  const [{ rows: keys, truncated }, { data: credit }] = await Promise.all([
    client.list<KeyRow>(tenantPath(tenant, '/keys')),
    client.get<{ data: { balanceCents: number; spendableCents: number | null; currency: string } }>(
      tenantPath(tenant, '/credit?limit=1'),
    ),
  ]);
  const { balanceCents, spendableCents, currency } = credit;
  const activeKeys = keys.filter(({ status }) => status === 'active').length;
  const lines: [string, string][] = [
    ['Tenant', data.id],
    ['Name', printable(data.name)],
    ['External id', data.externalId ?? '-'],
    ['Plan', data.plan],
    ['Status', data.status],
    ['Created', data.createdAt],
    ...(data.closedAt === null ? [] : [['Closed', data.closedAt] as [string, string]]),
    ...(data.erasedAt === null ? [] : [['Erased', data.erasedAt] as [string, string]]),
    ['Active keys', `${activeKeys}${truncated ? ' or more' : ''}`],
    ['Balance', formatCents(balanceCents, currency)],
    ['Spendable', spendableCents === null ? 'not known at the moment' : formatCents(spendableCents, currency)],
  ];
  output.answer(
    { ...data, activeKeys, balanceCents, spendableCents, currency },
    lines.map(([label, value]) => `${`${label}:`.padEnd(14)}${value}`).join('\n'),
  );
}

/** Changes a tenant. `externalId` null: none. */
export async function updateTenant(
  { client, output }: Context,
  tenant: string,
  wanted: { name?: string; externalId?: string | null; plan?: string; profiles?: Record<string, string> },
): Promise<void> {
  const { data } = await client.patch<{ data: TenantRow }>(tenantPath(tenant), wanted);
  const { id, name, plan, externalId } = data;
  output.answer(
    data,
    `Tenant ${id} (${printable(name)}) has the plan ${plan} and ` +
      `${externalId === null ? 'no external id' : `the external id ${externalId}`}.`,
  );
}

export async function setStatus({ client, output }: Context, tenant: string, how: 'suspend' | 'resume'): Promise<void> {
  const { data } = await client.post<{ data: TenantRow }>(tenantPath(tenant, `/${how}`));
  output.answer(data, `Tenant ${data.id} (${printable(data.name)}) is ${data.status}.`);
}

export interface CloseOptions {
  refund?: boolean;
  writeOff?: boolean;
  ref?: string;
  source?: string;
  reason?: string;
  yes?: boolean;
}

/**
 * Closes a tenant, then takes its remaining credit out of the books if that was asked for. A repeat with the same ref
 * does what is missing after a failure.
 */
export async function closeTenant(context: Context, tenant: string, options: CloseOptions): Promise<void> {
  const { client, output } = context;
  const ending = endingOf(context, tenant, options);
  const consequences = `This closes it for good, revokes its keys and tokens${ending?.also ?? ''}.`;
  await confirmTenant(client, tenant, consequences, { yes: options.yes ?? false });
  const { data } = await client.post<{ data: TenantRow }>(tenantPath(tenant, '/close'));
  const closed = `Tenant ${data.id} (${printable(data.name)}) is closed, and its keys and tokens are revoked.`;
  if (ending === null) {
    output.answer(data, `${closed}\nIts credit stays: tollgate credit show ${data.id}`);
    return;
  }
  output.note(closed);
  await endCredit(context, tenant, ending);
}

/** How the remaining credit of a tenant leaves the books. */
interface Ending {
  /** For the question before the closing. */
  also: string;
  verb: string;
  book: () => Promise<void>;
}

/** Null: the credit stays. UsageFailure if the options do not belong together. */
function endingOf(context: Context, tenant: string, options: CloseOptions): Ending | null {
  const { refund = false, writeOff = false, ref, source, reason } = options;
  if (refund && writeOff) throw new UsageFailure('Give only one of --refund and --write-off.');
  if (!refund && !writeOff) {
    if (ref === undefined && source === undefined && reason === undefined) return null;
    throw new UsageFailure('--ref, --source and --reason belong to --refund or --write-off.');
  }
  if (ref === undefined) throw new UsageFailure('--refund and --write-off need --ref.');
  const of = { ref, yes: true, ...(source !== undefined && { source }) };
  if (refund) {
    const book = () => refundCredit(context, tenant, 'all', { ...of, ...(reason !== undefined && { reason }) });
    return { also: ' and refunds its credit', verb: 'refund', book };
  }
  if (reason === undefined) throw new UsageFailure('--write-off needs --reason.');
  const book = () => adjustCredit(context, tenant, 'all', { ...of, reason });
  return { also: ' and writes its credit off', verb: 'write off', book };
}

async function endCredit({ client, output }: Context, tenant: string, { verb, book }: Ending): Promise<void> {
  try {
    await book();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const none = error.code === 'insufficient_credit' ? await creditLeft(client, tenant) : undefined;
    if (none === undefined || none.left)
      throw new Failure(`The tenant is closed, but its credit stays: ${error.message}`, error.code);
    const { balanceCents, currency } = none;
    const owed = balanceCents === 0 ? '' : ` Usage takes the balance of ${formatCents(balanceCents, currency)}.`;
    output.answer({ entry: null, balanceCents, created: false, currency }, `Nothing was left to ${verb}.${owed}`);
    return;
  }
  const { left, lastCent, balanceCents, currency } = await creditLeft(client, tenant);
  if (lastCent !== undefined) output.note(`${formatCents(1, currency)} was written off. ${printable(lastCent)}`);
  if (left)
    output.note(
      `${formatCents(balanceCents, currency)} is still held by requests, or their usage is not booked yet. ` +
        'Repeat the command with another --ref when they have ended.',
    );
}

/**
 * The remains of a tenant at its end. `left`: credit that is not used up, or a debt of a cent or more. Less than a cent
 * of usage without credit stays carried. `lastCent`: why the newest refund did not pay it.
 */
async function creditLeft(
  client: Context['client'],
  tenant: string,
): Promise<{ left: boolean; lastCent: string | undefined; balanceCents: number; currency: string }> {
  const { data } = await client.get<{ data: BillingSummary & { currency: string } }>(
    tenantPath(tenant, '/credit?limit=2'),
  );
  const { balanceCents, carriedNanos, currency, entries } = data;
  const leftNanos = BigInt(balanceCents) * NANOS_PER_CENT - BigInt(carriedNanos);
  const lastCent = entries.find(({ source }) => source === LAST_CENT_SOURCE)?.reason;
  return { left: leftNanos > 0n || leftNanos <= -NANOS_PER_CENT, lastCent, balanceCents, currency };
}

export async function eraseTenant({ client, output }: Context, tenant: string, yes: boolean): Promise<void> {
  await confirmTenant(client, tenant, 'This erases names, owners, tags and external id, and cannot be undone.', {
    yes,
  });
  const { data } = await client.post<{ data: TenantRow }>(tenantPath(tenant, '/erase'));
  output.answer(data, `The personal data of tenant ${data.id} is erased. Its usage, ledger and invoices stay.`);
}
