import { Injectable } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { LRUCache } from 'lru-cache';
import { requireId } from '../http/require-id';

const MAX_TENANTS = 10_000;

/**
 * Which tenants exist. Billing and metering answer for any id, with zeros. A tenant is never deleted, because a closed
 * one keeps its books. So auth is not asked again for a tenant that was found once.
 */
@Injectable()
export class KnownTenants {
  private readonly found = new LRUCache<string, true>({ max: MAX_TENANTS });

  constructor(private readonly services: ServiceClient) {}

  /** Error: not_found. */
  async require(tenantId: string): Promise<void> {
    requireId('ten', tenantId);
    if (this.found.has(tenantId)) return;
    await this.services.request('auth.tenants.get', { tenantId });
    this.found.set(tenantId, true);
  }
}
