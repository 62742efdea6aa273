import { Injectable } from '@nestjs/common';
import { type Author, mintInvitationSecret, newId, RequestError } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { Invitations, type Invited, OPERATOR_LINK_MS } from './invitations';
import { Members } from './members';

/** Whom a link makes an operator. */
export interface OperatorLink {
  /** The hash of the link's secret. */
  hash: string;
  /** The operator also becomes owner of this tenant. */
  tenantId?: string;
  /** Refuses when there is an operator. */
  onlyFirst?: boolean;
  by?: Author;
}

/** Links that make operators. Each is in the audit log before it works. */
@Injectable()
export class OperatorLinks {
  constructor(
    private readonly services: ServiceClient,
    private readonly invitations: Invitations,
    private readonly members: Members,
  ) {}

  /** RequestError: operator_exists, not_found (tenant). `url`: the link without its secret. */
  async create({
    hash,
    tenantId,
    onlyFirst,
    by,
  }: OperatorLink): Promise<{ id: string; url: string; expiresAt: string }> {
    if (onlyFirst && (await this.members.hasOperator())) throw new RequestError('operator_exists');
    if (tenantId !== undefined) await this.services.request('auth.tenants.get', { tenantId });
    const id = newId('inv');
    const tenant = tenantId !== undefined && { tenantId };
    await this.services.request('auth.audit.record', {
      action: 'operator.invite',
      target: id,
      after: { ...tenant },
      ...tenant,
      ...(by && { by }),
    });
    const owned: Pick<Invited, 'tenantId' | 'role'> =
      tenantId === undefined ? { tenantId: null, role: null } : { tenantId, role: 'owner' };
    const invited = { email: null, operator: true, ...owned };
    const stored = await this.invitations.store({ id, hash }, invited, {
      invitedBy: null,
      lifetimeMs: OPERATOR_LINK_MS,
    });
    return { id, ...stored };
  }

  /** A whole link, for the program that prints it. Null if there is an operator. */
  async first(tenantId: string | null): Promise<string | null> {
    const { secret, hash } = mintInvitationSecret();
    try {
      const { url } = await this.create({ hash, onlyFirst: true, ...(tenantId !== null && { tenantId }) });
      return `${url}#${secret}`;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'operator_exists') return null;
      throw error;
    }
  }
}
