import { LRUCache } from 'lru-cache';

/** Means of lengths, by tenant and model. */
const MAX_MEANS = 10_000;
/** A length weighs an eighth, as in the store's own mean (rule 21). */
const WEIGHT = 1 / 8;
/** Of a tenant with more running requests, only this many are asked. */
const MAX_ASKED = 512;
const SHORTEST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** A running request. */
export interface Running {
  readonly tenantId: string;
  readonly keyId: string;
  readonly model: string;
  readonly startedMs: number;
}

/**
 * The requests that this process runs, and the mean length of each tenant's requests for each model. They tell when the
 * next running request will probably end. The store knows only one mean for all models and not the age of a request, so
 * its estimate serves only where nothing is known here.
 */
export class RunningRequests {
  private readonly byTenant = new Map<string, Set<Running>>();
  private readonly meansMs = new LRUCache<string, number>({ max: MAX_MEANS });

  began(request: Running): void {
    let running = this.byTenant.get(request.tenantId);
    if (!running) this.byTenant.set(request.tenantId, (running = new Set()));
    running.add(request);
  }

  ended(request: Running, nowMs: number): void {
    const running = this.byTenant.get(request.tenantId);
    if (!running?.delete(request)) return;
    if (running.size === 0) this.byTenant.delete(request.tenantId);
    const lengthMs = Math.max(0, nowMs - request.startedMs);
    const name = nameOf(request);
    const before = this.meansMs.get(name);
    this.meansMs.set(name, before === undefined ? lengthMs : before + (lengthMs - before) * WEIGHT);
  }

  /**
   * Milliseconds until the first of the tenant's or the key's running requests will probably end, from 1 s to 60 s.
   * Null: this process runs none of a model whose length is known.
   */
  soonestEndMs({ tenantId, keyId }: { tenantId: string; keyId: string | null }, nowMs: number): number | null {
    let soonestMs = Infinity;
    let asked = 0;
    for (const request of this.byTenant.get(tenantId) ?? []) {
      if (++asked > MAX_ASKED) break;
      if (keyId !== null && request.keyId !== keyId) continue;
      const meanMs = this.meansMs.get(nameOf(request));
      if (meanMs === undefined) continue;
      const leftMs = meanMs - (nowMs - request.startedMs);
      // Nothing says when an overdue request ends: as much time again as it is overdue.
      soonestMs = Math.min(soonestMs, Math.abs(leftMs));
    }
    return soonestMs === Infinity ? null : Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, soonestMs));
  }
}

function nameOf({ tenantId, model }: Running): string {
  return `${tenantId} ${model}`;
}
