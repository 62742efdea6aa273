import { LRUCache } from 'lru-cache';

const MAX_TENANTS = 10_000;
/** Number of requests that are counted before admission, for a tenant that is unknown or whose credit was short. */
const CAUTIOUS_REQUESTS = 64;
/** After its credit was short, all requests of a tenant are counted for this time. */
const SHORT_CREDIT_MS = 60_000;

interface Tenant {
  cautiousLeft: number;
  shortUntilMs: number;
}

/**
 * Decides which tenants' prompts are counted exactly before admission. The cheap bound overestimates the prompt's cost
 * about fourfold. With plenty of credit that does no harm. With little credit, such holds block each other, and
 * requests that could be paid for are refused. So the prompts of a tenant's first requests in this process are
 * counted, and those after its credit was short. Counting takes 55 ns a byte.
 */
export class ExactCounting {
  private readonly tenants = new LRUCache<string, Tenant>({ max: MAX_TENANTS });

  /** Called once a request. */
  isDue(tenantId: string, nowMs: number): boolean {
    const tenant = this.tenants.get(tenantId) ?? this.add(tenantId, 0);
    if (tenant.cautiousLeft > 0) {
      tenant.cautiousLeft -= 1;
      return true;
    }
    return tenant.shortUntilMs > nowMs;
  }

  /** The credit did not cover everything that was requested. */
  wasShort(tenantId: string, nowMs: number): void {
    this.add(tenantId, nowMs + SHORT_CREDIT_MS);
  }

  private add(tenantId: string, shortUntilMs: number): Tenant {
    const tenant = { cautiousLeft: CAUTIOUS_REQUESTS, shortUntilMs };
    this.tenants.set(tenantId, tenant);
    return tenant;
  }
}
