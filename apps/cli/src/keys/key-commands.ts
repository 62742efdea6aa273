import type { KeyRow, TokenRow } from '@tollgate/contracts';
import { type Context, noteTruncated } from '../command/context';
import { tenantPath } from '../command/operator-client';
import { printable, table } from '../command/table';

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
