import type { Context } from '../command/context';
import { onceReachable, REACHABLE_WAIT_MS } from '../first-start/demo';
import { Failure } from '../command/failure';
import type { OperatorClient } from '../command/operator-client';

const PATH = '/operator-invitations';

interface Invitation {
  id: string;
  link: string;
  expiresAt: string;
}

export async function inviteOperator({ client, output }: Context, tenantId: string | undefined): Promise<void> {
  const { data } = await client.post<{ data: Invitation }>(PATH, { ...(tenantId !== undefined && { tenantId }) });
  output.answer(
    data,
    `${data.link}\n\nThis link makes an operator of the console. It works once, until ${data.expiresAt}.`,
  );
}

export async function resetPassword({ client, output }: Context, email: string): Promise<void> {
  const { data } = await client.post<{ data: Omit<Invitation, 'id'> }>('/password-links', { email });
  output.answer(
    data,
    `${data.link}\n\nWith this link ${email} sets a new password, which ends all sessions. ` +
      `It works once, until ${data.expiresAt}.`,
  );
}

export async function removeOperator({ client, output }: Context, email: string): Promise<void> {
  await client.post('/console-operators/remove', { email });
  output.answer({ email, removed: true }, `${email} is no operator of the console any more. The account stays.`);
}

/**
 * The link of the first operator, who also owns the tenant. Null if the console has an operator. Waits a minute for a
 * console that has just started.
 */
export async function firstOperatorLink(client: OperatorClient, tenantId: string | null): Promise<string | null> {
  try {
    const wanted = { onlyFirst: true, ...(tenantId !== null && { tenantId }) };
    const invite = () => client.post<{ data: Invitation }>(PATH, wanted);
    return (await onceReachable(Date.now() + REACHABLE_WAIT_MS, invite)).data.link;
  } catch (error) {
    if (error instanceof Failure && error.code === 'operator_exists') return null;
    throw error;
  }
}
