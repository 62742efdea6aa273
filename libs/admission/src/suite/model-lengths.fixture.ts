import type { ExpectedEnd } from '../operations/expected-ends';
import type { ModelHold } from './model-arithmetic.fixture';

const LONGEST_HOLD_MS = 3_600_000;
const MAX_MODELS = 16;
const MAX_RUNNING = 512;

// rule 21: mean length of holds
/**
 * The mean length of a tenant's holds, and of each model's holds. Holds that end in one call together weigh an eighth,
 * with the mean of their lengths. Of the models, those that ended last are kept.
 */
export class HoldLengths {
  private readonly meansMs = new Map<string, number>();
  /** By tenant: the means of its models, the newest last. */
  private readonly modelMeansMs = new Map<string, Map<string, number>>();
  private ended: { tenantId: string; model: string; lengthMs: number }[] = [];

  add({ request: { draft }, admittedMs }: ModelHold, nowMs: number): void {
    const lengthMs = Math.min(LONGEST_HOLD_MS, Math.max(0, nowMs - admittedMs));
    this.ended.push({ tenantId: draft.tenantId, model: draft.model, lengthMs });
  }

  finishCall(): void {
    for (const [tenantId, all] of groups(this.ended, (one) => one.tenantId)) {
      this.meansMs.set(tenantId, nextMean(this.meansMs.get(tenantId), all));
      const means = this.modelMeansMs.get(tenantId) ?? new Map<string, number>();
      const byModel = [...groups(all, (one) => one.model)].sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [model, its] of byModel) {
        const meanMs = nextMean(means.get(model), its);
        means.delete(model);
        means.set(model, meanMs);
      }
      this.modelMeansMs.set(tenantId, new Map([...means].slice(-MAX_MODELS)));
    }
    this.ended = [];
  }

  // rule 14: waiting for running requests
  /** When the next of the running holds is expected to end. */
  passingMs(tenantId: string, running: number): number {
    const meanMs = this.meansMs.get(tenantId) ?? 0;
    return Math.min(60_000, Math.max(1_000, Math.floor(meanMs / Math.max(1, running))));
  }

  // rule 34: expected ends
  /** `pending`: the tenant's. In any order. */
  expectedEnds(tenantId: string, pending: readonly ModelHold[], nowMs: number): ExpectedEnd[] {
    if (pending.length > MAX_RUNNING) return [];
    const means = this.modelMeansMs.get(tenantId);
    const soonest = new Map<string, number>();
    for (const { request, admittedMs } of pending) {
      const { keyId, model } = request.draft;
      const meanMs = means?.get(model);
      if (meanMs === undefined) continue;
      const leftMs = Math.abs(meanMs - Math.max(0, nowMs - admittedMs));
      soonest.set(keyId, Math.min(soonest.get(keyId) ?? Infinity, leftMs));
    }
    return [...soonest].map(([keyId, endsInMs]) => ({ keyId, endsInMs }));
  }
}

function nextMean(meanMs: number | undefined, ended: readonly { lengthMs: number }[]): number {
  const newMs = Math.floor(ended.reduce((sum, { lengthMs }) => sum + lengthMs, 0) / ended.length);
  return meanMs ? Math.floor((meanMs * 7 + newMs) / 8) : newMs;
}

function groups<T>(all: readonly T[], nameOf: (one: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const one of all) found.set(nameOf(one), [...(found.get(nameOf(one)) ?? []), one]);
  return found;
}
