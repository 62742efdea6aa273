import { type TenantRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { Injectable } from '@nestjs/common';
import { requireId } from './require-id';

/** Finds the tenant of a path, so that an unknown tenant is `not_found` and never an empty list. */
@Injectable()
export class TenantLookup {
  constructor(private readonly services: ServiceClient) {}

  /** Error: not_found. */
  async get(tenantId: string): Promise<TenantRow> {
    requireId('ten', tenantId);
    return this.services.request('auth.tenants.get', { tenantId });
  }
}
