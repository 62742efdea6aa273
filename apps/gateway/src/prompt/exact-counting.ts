import { LRUCache } from 'lru-cache';

const MAX_TENANTS = 10_000;
/**
 * Requests of a tenant that was not seen lately, or whose credit was short, that are counted before they are admitted.
 */
const CAUTIOUS_REQUESTS = 64;
/** For so long after its credit was short, all of them are. */
const SHORT_CREDIT_MS = 60_000;

interface Tenant {
  cautiousLeft: number;
  shortUntilMs: number;
}

/**
 * Whose prompts are counted exactly at once. The cheap bound of a prompt holds about four times too much of its price:
 * nobody notices as long as there is plenty of credit, but near its end such holds stand in each other's way, and
 * requests that could be paid for are refused. So a tenant has to show first that it has credit: counting costs 55 ns a
 * byte.
 */
export class ExactCounting {
  private readonly tenants = new LRUCache<string, Tenant>({ max: MAX_TENANTS });

  /** Called once a request. */
  isDue(tenantId: string, nowMs: number): boolean {
    const tenant = this.tenants.get(tenantId) ?? this.add(tenantId, 0);
    if (tenant.cautiousLeft > 0) tenant.cautiousLeft -= 1;
    else return tenant.shortUntilMs > nowMs;
    return true;
  }

  /** The credit did not reach for all that was wanted. */
  wasShort(tenantId: string, nowMs: number): void {
    this.add(tenantId, nowMs + SHORT_CREDIT_MS);
  }

  private add(tenantId: string, shortUntilMs: number): Tenant {
    const tenant = { cautiousLeft: CAUTIOUS_REQUESTS, shortUntilMs };
    this.tenants.set(tenantId, tenant);
    return tenant;
  }
}
