import type { OperatorTokenRow } from '@tollgate/contracts';
import { type Context, noteTruncated } from '../command/context';
import { tokenTable } from '../keys/key-commands';
import { printable } from '../command/table';

const PATH = '/operator-tokens';

export async function createOperatorToken(
  { client, output }: Context,
  wanted: { name: string; scopes: string[]; expiresAt?: string },
): Promise<void> {
  const { data, note } = await client.post<{ data: OperatorTokenRow & { token: string }; note: string }>(PATH, wanted);
  const { id, name, scopes, token } = data;
  output.answer(
    data,
    `${token}\n\nOperator token ${id} (${printable(name)}) with ${scopes.join(', ')}. ${note}\n` +
      'The command uses it in place of the secret: set TOLLGATE_OPERATOR_SECRET to it.',
  );
}

export async function listOperatorTokens({ client, output }: Context): Promise<void> {
  const { rows, truncated } = await client.list<OperatorTokenRow>(PATH);
  const none = 'There are no operator tokens yet: tollgate operator token create <name> --scopes read';
  output.answer(rows, tokenTable(rows, none));
  noteTruncated(output, truncated);
}

export async function revokeOperatorToken({ client, output }: Context, id: string): Promise<void> {
  await client.delete(`${PATH}/${encodeURIComponent(id)}`);
  output.answer({ id, status: 'revoked' }, `The operator token ${id} is revoked.`);
}
