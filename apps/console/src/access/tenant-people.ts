import { Injectable } from '@nestjs/common';
import { type AuditRow, isId } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { Members } from './members';

/**
 * The authors of changes whom a tenant may know: its tokens, and the people who belong to it or once did. A person who
 * joins writes the row of it, so the log itself says who did. Operators join nothing.
 */
@Injectable()
export class TenantPeople {
  constructor(
    private readonly services: ServiceClient,
    private readonly members: Members,
  ) {}

  /** Whether the tenant may know this author, by id or by e-mail address. */
  async isOwn(tenantId: string, author: string): Promise<boolean> {
    if (isId('tok', author)) return true;
    const members = await this.members.idsAmong(tenantId, [author]);
    return members.length > 0 || this.joined(tenantId, author);
  }

  /** Among the authors of some rows of the tenant, the ids of the people whom it may know. */
  async ownAmong(tenantId: string, rows: readonly AuditRow[]): Promise<Set<string>> {
    const authors = new Set(rows.flatMap(({ by }) => (by.kind === 'person' && by.id !== null ? [by.id] : [])));
    const own = new Set(await this.members.idsAmong(tenantId, [...authors]));
    // As many as a page has rows, at most.
    const others = [...authors].filter((id) => !own.has(id));
    const joined = await Promise.all(others.map((id) => this.joined(tenantId, id)));
    others.forEach((id, index) => joined[index] && own.add(id));
    return own;
  }

  private async joined(tenantId: string, author: string): Promise<boolean> {
    const wanted = { tenantId, author, action: 'member.add', limit: 1 } as const;
    const { data } = await this.services.request('auth.audit.list', wanted);
    return data.some(({ by, target }) => by.kind === 'person' && by.id === target);
  }
}
