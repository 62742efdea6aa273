import type { BillingSummary, KeyRow, TokenRow } from '@tollgate/contracts';
import { formatCents, formatNanos } from './command/money';
import { MAX_LIST_ROWS, type OperatorClient, tenantPath } from './command/operator-client';
import type { Output } from './command/output';
import { printable, table } from './command/table';

/** The client and the output of a command. */
export interface Context {
  client: OperatorClient;
  output: Output;
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

export interface KeyOptions {
  profile?: string;
  expiresAt?: string;
  owner?: string;
  tags?: string[];
  models?: string[];
}

export async function createKey(
  { client, output }: Context,
  tenant: string,
  wanted: { name: string } & KeyOptions,
): Promise<void> {
  const { data, note } = await client.post<{ data: KeyRow & { key: string }; note: string }>(
    tenantPath(tenant, '/keys'),
    wanted,
  );
  output.answer(data, `${data.key}\n\nKey ${data.id} (${printable(data.name)}). ${note}`);
}

/** Changes a key. `expiresAt` null: never; `owner` null: nobody. */
export async function updateKey(
  { client, output }: Context,
  tenant: string,
  id: string,
  wanted: Record<string, unknown>,
): Promise<void> {
  const { data } = await client.patch<{ data: KeyRow }>(tenantPath(tenant, `/keys/${encodeURIComponent(id)}`), wanted);
  output.answer(data, `Key ${data.id} (${printable(data.name)}) was changed. It takes effect within a second.`);
}

/** Gives a key its next secret. */
export async function rotateKey(
  { client, output }: Context,
  tenant: string,
  id: string,
  graceSeconds: number,
): Promise<void> {
  const { data, note } = await client.post<{ data: KeyRow & { key: string }; note: string }>(
    tenantPath(tenant, `/keys/${encodeURIComponent(id)}/rotate`),
    { graceSeconds },
  );
  const former =
    graceSeconds === 0 ? 'Former secrets are refused.' : `Former secrets are accepted until ${data.formerUntil}.`;
  output.answer(data, `${data.key}\n\nKey ${data.id} (${printable(data.name)}). ${former} ${note}`);
}

export async function listKeys({ client, output }: Context, tenant: string): Promise<void> {
  const { rows, truncated } = await client.list<KeyRow>(tenantPath(tenant, '/keys'));
  const cells = rows.map(
    ({ id, name, last4, status, profile, models, owner, tags, createdAt, lastUsedAt, expiresAt }) => [
      ...[id, name, `…${last4}`, status, profile, models?.join(',') ?? 'all', owner ?? '-', tags.join(',') || '-'],
      ...[createdAt, lastUsedAt ?? 'never', expiresAt ?? 'never'],
    ],
  );
  output.answer(
    rows,
    table(
      ['ID', 'NAME', 'KEY', 'STATUS', 'PROFILE', 'MODELS', 'OWNER', 'TAGS', 'CREATED', 'LAST USED', 'EXPIRES'],
      cells,
      `There are no keys yet: tollgate key create ${tenant} <name>`,
    ),
  );
  noteTruncated(output, truncated);
}

export async function createToken(
  { client, output }: Context,
  tenant: string,
  wanted: { name: string; scopes: string[]; expiresAt?: string },
): Promise<void> {
  const { data, note } = await client.post<{ data: TokenRow & { token: string }; note: string }>(
    tenantPath(tenant, '/tokens'),
    wanted,
  );
  output.answer(
    data,
    `${data.token}\n\nToken ${data.id} (${printable(data.name)}) with ${data.scopes.join(', ')}. ${note}`,
  );
}

export async function listTokens({ client, output }: Context, tenant: string): Promise<void> {
  const { rows, truncated } = await client.list<TokenRow>(tenantPath(tenant, '/tokens'));
  output.answer(rows, tokenTable(rows, `There are no tokens yet: tollgate token create ${tenant} <name>`));
  noteTruncated(output, truncated);
}

export function tokenTable(rows: readonly TokenRow[], none: string): string {
  const cells = rows.map(({ id, name, last4, scopes, lastUsedAt, expiresAt, revokedAt }) => [
    ...[id, name, `…${last4}`, scopes.join(',')],
    lastUsedAt ?? 'never',
    expiresAt ?? 'never',
    revokedAt ?? '-',
  ]);
  return table(['ID', 'NAME', 'TOKEN', 'SCOPES', 'LAST USED', 'EXPIRES', 'REVOKED'], cells, none);
}

export async function revoke(
  { client, output }: Context,
  what: 'key' | 'token',
  tenant: string,
  id: string,
): Promise<void> {
  await client.delete(tenantPath(tenant, `/${what}s/${encodeURIComponent(id)}`));
  output.answer({ id, status: 'revoked' }, `The ${what} ${id} is revoked.`);
}

export function noteTruncated(output: Output, truncated: boolean): void {
  if (truncated) output.note(`Only the newest ${MAX_LIST_ROWS} are listed.`);
}
