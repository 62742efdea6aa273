import type { UsageEvent } from '@tollgate/contracts';
import {
  DEFAULT_LEASE_MS,
  type AdmitRequest,
  type AdmitResult,
  type Budget,
  type ExpectedEnd,
  type ExtendRequest,
  type ExtendResult,
  type ParsedBalanceUpdate,
  type Progress,
  type Refusal,
  type SettleResult,
  type Snapshot,
} from '../admission-store';
import {
  type Account,
  bucketsAt,
  bucketUs,
  costOf,
  expiredEvent,
  grant,
  limitsOf,
  MINUTE_US,
  type ModelHold,
  type Purse,
  putRight,
  readBuckets,
} from './model-arithmetic.fixture';
import { ModelHolds } from './model-holds.fixture';
import { HoldLengths } from './model-lengths.fixture';

/**
 * The admission store as one page of plain code, one request at a time: what every implementation must answer. It
 * follows the rules and not the SQL: it keeps no running sums, but adds up the holds for each question.
 */
export class Model {
  nowMs = 0;
  readonly holds = new ModelHolds();
  private readonly tenants = new Map<string, { version: bigint; balanceNanos: bigint; suspended: boolean }>();
  private readonly accounts = new Map<string, Account>();
  private readonly corrections = new Map<Account, number>();
  private readonly lengths = new HoldLengths();
  /** Budgets of the operator, by tenant and key (or null). */
  private readonly budgets = new Map<string, Budget>();

  admit(request: AdmitRequest): AdmitResult | 'mistake' {
    const { id, tenantId, keyId } = request.draft;
    const [key, tenant] = [this.account(`${tenantId}/${keyId}`), this.account(tenantId)];
    const nowUs = this.nowMs * 1000;
    readBuckets([key, tenant], nowUs);
    const limits = () => ({
      ...limitsOf(key, request.keyLimits, nowUs),
      tenant: limitsOf(tenant, request.tenantLimits, nowUs),
    });
    // rule 2: a repeated admission
    const existing = this.holds.get(id);
    if (existing) {
      const { draft } = existing.request;
      if (existing.state !== 'pending' || draft.tenantId !== tenantId || draft.keyId !== keyId) return 'mistake';
      const { holdNanos, outputTokens } = existing;
      return { kind: 'held', holdNanos, outputTokens, limits: limits() };
    }
    const refused = (reason: Refusal, scope: 'key' | 'tenant', retryAfterMs: number | null = null): AdmitResult => {
      return { kind: 'refused', reason, scope, retryAfterMs, limits: limits() };
    };
    const money = grant(request, this.purses(request, key, tenant));
    const tokens = request.promptTokens + (typeof money === 'number' ? money : request.wantOutputTokens);
    const [ofKey, ofTenant] = [bucketsAt(key, nowUs), bucketsAt(tenant, nowUs)];
    const next = {
      keyRequests: ofKey.requestsUs + bucketUs(1, request.keyLimits.requestsPerMinute),
      tenantRequests: ofTenant.requestsUs + bucketUs(1, request.tenantLimits.requestsPerMinute),
      keyTokens: ofKey.tokensUs + bucketUs(tokens, request.keyLimits.tokensPerMinute),
      tenantTokens: ofTenant.tokensUs + bucketUs(tokens, request.tenantLimits.tokensPerMinute),
    };
    const over = (fullUs: number) => fullUs > nowUs + MINUTE_US;
    const waitMs = Math.ceil((Math.max(...Object.values(next)) - nowUs - MINUTE_US) / 1000);

    // rule 10: tenant suspended
    if (this.tenants.get(tenantId)?.suspended) return refused('tenant_suspended', 'tenant');
    // rule 11: request rate
    if (over(next.keyRequests)) return refused('requests', 'key', waitMs);
    if (over(next.tenantRequests)) return refused('requests', 'tenant', waitMs);
    // rule 12: token rate
    if (over(next.keyTokens)) return refused('tokens', 'key', waitMs);
    if (over(next.tenantTokens)) return refused('tokens', 'tenant', waitMs);
    // rule 13: concurrency
    const running = { key: this.holds.pending(tenantId, keyId).length, tenant: this.holds.pending(tenantId).length };
    const passing = (scope: 'key' | 'tenant') => this.lengths.passingMs(tenantId, running[scope]);
    if (running.key >= request.keyLimits.concurrency) return refused('concurrency', 'key', passing('key'));
    if (running.tenant >= request.tenantLimits.concurrency) return refused('concurrency', 'tenant', passing('tenant'));
    if (typeof money !== 'number') return refused(...money, money[0] === 'credit_held' ? passing(money[1]) : null);

    const holdNanos = costOf(request, money);
    this.holds.set(id, {
      request,
      state: 'pending',
      holdNanos,
      outputTokens: money,
      admittedMs: this.nowMs,
      deadlineMs: this.nowMs + DEFAULT_LEASE_MS,
      progressedMs: this.nowMs,
      delivered: null,
      costNanos: 0n,
      unconfirmedSinceMs: 0,
      event: null,
    });
    Object.assign(key, { requestsUs: next.keyRequests, tokensUs: next.keyTokens, writtenUs: nowUs });
    Object.assign(tenant, { requestsUs: next.tenantRequests, tokensUs: next.tenantTokens, writtenUs: nowUs });
    return { kind: 'held', holdNanos, outputTokens: money, limits: limits() };
  }

  expectedEnds(tenantId: string): ExpectedEnd[] {
    return this.lengths.expectedEnds(tenantId, this.holds.pending(tenantId), this.nowMs);
  }

  // rule 16: extension
  extend({ id, tenantId, wantNanos, minNanos }: ExtendRequest): ExtendResult {
    const hold = this.holds.pendingHold(id, tenantId);
    if (!hold) return { kind: 'forbidden' };
    const { keyId } = hold.request.draft;
    const [key, tenant] = [this.account(`${tenantId}/${keyId}`), this.account(tenantId)];
    const available = this.purses(hold.request, key, tenant).map(({ spendable, held }) => spendable - held);
    const grantedNanos = [wantNanos, ...available].reduce((a, b) => (a < b ? a : b));
    if (grantedNanos < minNanos) return { kind: 'refused' };
    hold.holdNanos += grantedNanos;
    return { kind: 'extended', grantedNanos, holdNanos: hold.holdNanos };
  }

  // rule 17: heartbeat
  progress({ id, tenantId, delivered }: Progress): boolean {
    const hold = this.holds.pendingHold(id, tenantId);
    if (!hold) return false;
    hold.deadlineMs = this.nowMs + DEFAULT_LEASE_MS;
    hold.progressedMs = this.nowMs;
    hold.delivered = delivered ?? hold.delivered;
    return true;
  }

  settle(events: readonly UsageEvent[]): (SettleResult | 'mistake')[] {
    const results = events.map((event): SettleResult | 'mistake' => {
      const hold = this.holds.get(event.id);
      if (!hold || hold.request.draft.tenantId !== event.tenantId) return { kind: 'forbidden' };
      if (hold.event) return { kind: 'settled', repeated: true, event: hold.event };
      if (BigInt(event.costNanos) > hold.holdNanos) return 'mistake';
      this.end(hold, event);
      return { kind: 'settled', repeated: false, event };
    });
    this.finishCall();
    return results;
  }

  void(holds: readonly { id: string; tenantId: string }[]): boolean[] {
    const results = holds.map(({ id, tenantId }) => {
      const hold = this.holds.pendingHold(id, tenantId);
      if (hold) this.end(hold, null);
      return hold !== undefined;
    });
    this.finishCall();
    return results;
  }

  sweep(confirmAfterMs: number): UsageEvent[] {
    for (const hold of this.holds.values()) putRight(hold, this.nowMs);
    // rule 25: unconfirmed settlements
    const unconfirmed = [...this.holds.values()].filter(
      (hold) => hold.state === 'settled' && hold.unconfirmedSinceMs <= this.nowMs - confirmAfterMs,
    );
    // rule 23: expiry
    const expired = [...this.holds.values()].filter(
      (hold) => hold.state === 'pending' && hold.deadlineMs <= this.nowMs,
    );
    for (const hold of expired) this.end(hold, expiredEvent(hold));
    this.finishCall();
    for (const hold of unconfirmed) hold.unconfirmedSinceMs = this.nowMs;
    return [...unconfirmed, ...expired.filter((hold) => hold.event)].map((hold) => hold.event!);
  }

  applyBalanceUpdates({
    tenantId,
    version,
    balanceNanos,
    releases,
    suspended,
    budgets = [],
  }: ParsedBalanceUpdate): void {
    // rule 28: newer budgets
    for (const budget of budgets) {
      const name = `${tenantId}/${budget.keyId}`;
      if (budget.version > (this.budgets.get(name)?.version ?? 0n)) this.budgets.set(name, budget);
    }
    // rule 26: newer balance
    if (version > (this.tenants.get(tenantId)?.version ?? 0n))
      this.tenants.set(tenantId, { version, balanceNanos, suspended });
    // rule 27: releases
    for (const id of releases) {
      const hold = this.holds.get(id);
      if (hold?.state === 'settled' && hold.request.draft.tenantId === tenantId) this.holds.delete(id);
    }
  }

  /** The sums over the tenant's holds, and its balance. */
  sums(
    tenantId: string,
  ): Pick<Snapshot, 'balanceNanos' | 'settledNanos' | 'pendingNanos' | 'pendingHolds' | 'settledHolds'> {
    const settled = this.holds.settled(tenantId);
    const pending = this.holds.pending(tenantId);
    return {
      balanceNanos: this.tenants.get(tenantId)?.balanceNanos ?? 0n,
      settledNanos: settled.reduce((sum, hold) => sum + hold.costNanos, 0n),
      pendingNanos: pending.reduce((sum, hold) => sum + hold.holdNanos, 0n),
      pendingHolds: pending.length,
      settledHolds: settled.length,
    };
  }

  // rule 3: spendable and unspent
  /** The sources that the request draws on, in the order of refusal. */
  private purses({ draft, keyBudgetNanos, tenantBudgetNanos }: AdmitRequest, key: Account, tenant: Account): Purse[] {
    const { tenantId, keyId } = draft;
    const sum = (holds: ModelHold[]) => holds.reduce((nanos, hold) => nanos + hold.holdNanos, 0n);
    const [keyHeld, tenantHeld] = [sum(this.holds.pending(tenantId, keyId)), sum(this.holds.pending(tenantId))];
    const { balanceNanos, settledNanos } = this.sums(tenantId);
    const purses: Purse[] = [];
    const keyBudget = this.budget(tenantId, keyId, keyBudgetNanos);
    const tenantBudget = this.budget(tenantId, null, tenantBudgetNanos);
    if (keyBudget !== null)
      purses.push({ name: 'budget', scope: 'key', spendable: keyBudget - this.spent(key), held: keyHeld });
    if (tenantBudget !== null)
      purses.push({ name: 'budget', scope: 'tenant', spendable: tenantBudget - this.spent(tenant), held: tenantHeld });
    purses.push({ name: 'credit', scope: 'tenant', spendable: balanceNanos - settledNanos, held: tenantHeld });
    return purses;
  }

  private budget(tenantId: string, keyId: string | null, byDefault: bigint | null): bigint | null {
    const set = this.budgets.get(`${tenantId}/${keyId}`)?.nanos ?? 'default';
    if (set === 'default') return byDefault;
    return set === 'none' ? null : set;
  }

  /** Applies the token differences of one call as one sum, and its lengths as one mean. */
  private finishCall(): void {
    for (const [account, byUs] of this.corrections) {
      if (byUs === 0) continue;
      Object.assign(account, bucketsAt(account, this.nowMs * 1000));
      account.tokensUs += byUs;
    }
    this.corrections.clear();
    this.lengths.finishCall();
  }

  // rule 18: the end of a hold
  private end(hold: ModelHold, event: UsageEvent | null): void {
    const { draft, keyLimits, tenantLimits, promptTokens } = hold.request;
    const counted = promptTokens + hold.outputTokens;
    this.lengths.add(hold, this.nowMs);
    const real = event ? event.promptTokens + event.completionTokens : 0;
    for (const [name, { tokensPerMinute }] of [
      [`${draft.tenantId}/${draft.keyId}`, keyLimits],
      [draft.tenantId, tenantLimits],
    ] as const) {
      const account = this.account(name);
      // rule 20: token correction
      const byUs = bucketUs(real, tokensPerMinute) - bucketUs(counted, tokensPerMinute);
      this.corrections.set(account, (this.corrections.get(account) ?? 0) + byUs);
      // rule 19: spent in the month
      account.spentNanos = this.spent(account);
      account.month = this.month();
      if (event && event.endedAt.slice(0, 7) >= account.month) account.spentNanos += BigInt(event.costNanos);
    }
    if (!event) {
      this.holds.delete(draft.id);
      return;
    }
    Object.assign(hold, {
      state: 'settled',
      event,
      costNanos: BigInt(event.costNanos),
      unconfirmedSinceMs: this.nowMs,
    });
  }

  private account(name: string): Account {
    let account = this.accounts.get(name);
    if (!account)
      this.accounts.set(name, (account = { month: '', spentNanos: 0n, requestsUs: 0, tokensUs: 0, writtenUs: 0 }));
    return account;
  }

  /** Spent in this month. A sum of a month in the future by this clock, which was ahead, counts too. */
  private spent({ month, spentNanos }: Account): bigint {
    return month >= this.month() ? spentNanos : 0n;
  }

  private month(): string {
    return new Date(this.nowMs).toISOString().slice(0, 7);
  }
}
