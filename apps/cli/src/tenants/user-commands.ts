import type { Context } from '../command/context';

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
