import { isId, type TenantRow } from '@tollgate/contracts';
import { Messages } from '@tollgate/messaging';
import { Injectable } from '@nestjs/common';
import { ApiError } from '../management/envelope';

/** Finds the tenant that a path names, so that what belongs to nobody is `not_found` and never an empty list. */
@Injectable()
export class TenantLookup {
  constructor(private readonly messages: Messages) {}

  /** Error: not_found. */
  async get(tenantId: string): Promise<TenantRow> {
    if (!isId('ten', tenantId)) throw new ApiError('not_found', 'No such tenant.');
    return this.messages.request('auth.tenants.get', { tenantId });
  }
}
