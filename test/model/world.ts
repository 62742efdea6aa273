import { readNews, type AdmitRequest } from '@tollgate/admission';
import {
  costNanos,
  FEMTOS_PER_NANO,
  newId,
  type Charge,
  type CreditNews,
  type TokenCounts,
  type UsageDraft,
  type UsageEvent,
} from '@tollgate/contracts';
import assert from 'node:assert/strict';
import { toUsageEvent } from '../../apps/gateway/src/usage/usage-event';
import { stamp, type Command } from './commands';
import type { Stores } from './stores';
import { Truth } from './truth';

const WIDE = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 };
/** Beyond the lease: what nobody keeps alive has expired. */
const EXPIRED_MS = 15_000;
/** Rounds of sweeping and delivering in which everything must have come to rest. */
const MAX_ROUNDS = 4;
const ALL = 10_000;

/** A request that a gateway believes to run. */
interface Running {
  draft: UsageDraft;
  gateway: number;
  promptTokens: number;
  holdNanos: bigint;
}

/**
 * What is around the stores: gateways that die, queues that deliver anything in any order and any number of times, time. It keeps the truth: what each request must be charged in
 * the end. After each command nothing is overdrawn; once all has come to rest, the books are the truth, to the nano.
 */
export class World {
  private readonly tenants = [newId('ten'), newId('ten')];
  private readonly keys = [newId('key'), newId('key')];
  private readonly running = new Map<string, Running>();
  private readonly truth = new Truth();
  private readonly money = new Map<string, number>();
  private readonly queues = { usage: [] as UsageEvent[], charges: [] as Charge[], news: [] as CreditNews[] };
  private price = stamp(1_000_000n, 0n);
  private readonly budgets: { key: bigint | null; tenant: bigint | null } = { key: null, tenant: null };
  private admitted = 0;

  constructor(private readonly stores: Stores) {}

  /** @param commands in their order; then everything is brought to rest, and the books are held against the truth */
  async run(commands: readonly Command[]): Promise<void> {
    await this.apply({ do: 'topUp', tenant: 0, cents: 25, ref: 99 });
    await this.deliverNews(ALL);
    for (const command of commands) {
      await this.apply(command);
      await this.nothingIsOverdrawn();
    }
    await this.comeToRest();
    await this.booksAreTheTruth();
  }

  private async apply(command: Command): Promise<void> {
    const { stores, queues } = this;
    switch (command.do) {
      case 'topUp':
      case 'refund':
        return this.moveMoney(command);
      case 'price':
        this.price = stamp(command.output, command.input);
        return;
      case 'budget':
        this.budgets[command.of] = command.nanos;
        return;
      case 'admit':
        return this.admit(command);
      case 'extend':
        return this.extend(command);
      case 'progress':
        return this.progress(command);
      case 'settle':
        return this.settle(command);
      case 'void': {
        const request = this.pick(command.pick);
        if (!request) return;
        const { id, tenantId } = request.draft;
        this.running.delete(id);
        const [done] = await stores.admission.void([{ id, tenantId }]);
        if (done) this.truth.isVoid(id);
        return;
      }
      case 'killGateway':
        for (const [id, { gateway }] of this.running) if (gateway === command.gateway) this.running.delete(id);
        return;
      case 'usage':
        return this.deliver(command, queues.usage, (batch) => stores.recordUsage(batch, command.crash), queues.charges);
      case 'charges':
        return this.deliver(command, queues.charges, (batch) => stores.gather(batch, command.crash), queues.news);
      case 'news':
        return this.deliver(command, queues.news, (batch) => this.applyNews(batch), []);
      case 'post': {
        const news = (await stores.post(command.crash)) ?? [];
        queues.news.push(...news, ...(command.twice ? news : []));
        return;
      }
      case 'sweep': {
        const swept = await this.sweep(command.confirmAfterMs);
        // Handed out, and its process died before it published them.
        if (!command.lost) queues.usage.push(...swept);
        return;
      }
      case 'wait':
        stores.clock.nowMs += command.ms;
    }
  }

  private async moveMoney({
    do: kind,
    tenant,
    cents,
    ref,
  }: Extract<Command, { do: 'topUp' | 'refund' }>): Promise<void> {
    const tenantId = this.tenants[tenant]!;
    const amount = kind === 'topUp' ? cents : -cents;
    const name = `${tenantId} ${kind} ${ref}`;
    const first = this.money.get(name);
    const { news, refused } = await this.stores.money(tenantId, amount, `${kind} ${ref}`);
    this.queues.news.push(...news);
    if (first !== undefined) assert.equal(refused, first !== amount, 'a repeated ref is the same, or refused');
    else if (kind === 'topUp') assert.equal(refused, false);
    if (refused || first !== undefined) return;
    this.money.set(name, amount);
    this.truth.paid(tenantId, amount);
  }

  private async admit({ tenant, key, prompt, want, least }: Extract<Command, { do: 'admit' }>): Promise<void> {
    const now = new Date(this.stores.clock.nowMs).toISOString();
    const draft: UsageDraft = {
      id: newId('req'),
      tenantId: this.tenants[tenant]!,
      keyId: this.keys[key]!,
      model: 'sim',
      kind: 'chat',
      stream: true,
      price: this.price,
      startedAt: now,
    };
    const request: AdmitRequest = {
      draft,
      tenantLimits: WIDE,
      keyLimits: WIDE,
      keyBudgetNanos: this.budgets.key,
      tenantBudgetNanos: this.budgets.tenant,
      promptTokens: prompt,
      promptFemtos: BigInt(prompt) * BigInt(this.price.inputFemtos),
      outputFemtosPerToken: BigInt(this.price.outputFemtos),
      wantOutputTokens: want,
      minOutputTokens: want === 0 ? 0 : Math.max(1, Math.min(want, least)),
      boundIsExact: true,
    };
    const [result] = await this.stores.admission.admit([request]);
    assert(result && !(result instanceof RangeError));
    if (result.kind !== 'held') return;
    const gateway = this.admitted++ % 2;
    this.running.set(draft.id, { draft, gateway, promptTokens: prompt, holdNanos: result.holdNanos });
  }

  private async extend({ pick, tokens }: Extract<Command, { do: 'extend' }>): Promise<void> {
    const request = this.pick(pick);
    if (!request) return;
    const { id, tenantId, price } = request.draft;
    const perToken = BigInt(price.outputFemtos) / FEMTOS_PER_NANO;
    const wantNanos = perToken * BigInt(tokens);
    const [result] = await this.stores.admission.extend([{ id, tenantId, wantNanos, minNanos: perToken }]);
    if (result!.kind === 'extended') request.holdNanos = result!.holdNanos;
    if (result!.kind === 'forbidden') this.running.delete(id);
  }

  private async progress({ pick, tokens }: Extract<Command, { do: 'progress' }>): Promise<void> {
    const request = this.pick(pick);
    if (!request) return;
    const { id, tenantId, price } = request.draft;
    const counts = this.covered(request, tokens);
    const delivered = { ...counts, costNanos: costNanos(counts, price) };
    const [pending] = await this.stores.admission.progress([{ id, tenantId, delivered }]);
    if (pending) this.truth.progressed(id, counts);
    else this.running.delete(id);
  }

  private async settle({ pick, tokens, overrun, emitted, again }: Extract<Command, { do: 'settle' }>): Promise<void> {
    const request = this.pick(pick);
    if (!request) return;
    const { id } = request.draft;
    const counts = overrun
      ? { promptTokens: request.promptTokens, cachedTokens: 0, completionTokens: tokens + 50 }
      : this.covered(request, tokens);
    const endedMs = this.stores.clock.nowMs;
    const { draft, holdNanos } = request;
    const event = toUsageEvent(draft, { tokens: counts, estimated: false, outcome: 'complete', holdNanos, endedMs });
    this.running.delete(id);
    let standing = event;
    for (let time = 0; time < (again ? 2 : 1); time++) {
      const [result] = await this.stores.admission.settle([{ event }]);
      assert(result && !(result instanceof RangeError), 'a cost is capped by its hold');
      assert(result.kind !== 'lost', 'no store is emptied here');
      if (result.kind === 'forbidden') return;
      standing = this.truth.ended(result.event);
    }
    // The last byte goes out now. Whether metering hears of it from the gateway is another matter.
    if (emitted) this.queues.usage.push(standing);
  }

  private async sweep(confirmAfterMs: number): Promise<UsageEvent[]> {
    const swept = await this.stores.admission.sweep({ limit: ALL, confirmAfterMs });
    const mine = swept.filter(({ tenantId }) => this.tenants.includes(tenantId));
    for (const event of mine) this.truth.ended(event);
    return mine;
  }

  private async deliver<T, U>(
    { picks, acknowledged, twice }: { picks: readonly number[]; acknowledged: boolean; twice: boolean },
    from: T[],
    handle: (batch: T[]) => Promise<U[] | null>,
    to: U[],
  ): Promise<void> {
    if (from.length === 0) return;
    const indexes = picks.map((pick) => from.length - 1 - (pick % from.length));
    const out = await handle(indexes.map((index) => from[index]!));
    if (out === null) return;
    to.push(...out, ...(twice ? out : []));
    if (acknowledged) for (const index of [...new Set(indexes)].sort((a, b) => b - a)) from.splice(index, 1);
  }

  private async applyNews(batch: readonly CreditNews[]): Promise<never[]> {
    await this.stores.admission.applyNews(batch.map(readNews));
    return [];
  }

  private async deliverNews(count: number): Promise<void> {
    const batch = this.queues.news.splice(0, count);
    if (batch.length > 0) await this.applyNews(batch);
  }

  /** At any moment, also while news are out of order: what was paid covers what was used and what may still be used. */
  private async nothingIsOverdrawn(): Promise<void> {
    for (const tenantId of this.tenants) {
      const [snapshot] = await this.stores.admission.snapshot({ tenantId, limit: 1 });
      if (!snapshot) continue;
      assert.equal(snapshot.pendingNanos, snapshot.holdRowsPendingNanos);
      assert.equal(snapshot.settledNanos, snapshot.holdRowsSettledNanos);
      const left = this.truth.leftNanos(tenantId) - snapshot.pendingNanos;
      assert(left >= 0n, `overdrawn by ${-left} nanos`);
    }
  }

  /** Every gateway is gone, every queue is emptied, nobody crashes any more. */
  private async comeToRest(): Promise<void> {
    const { stores, queues } = this;
    this.running.clear();
    for (let round = 1; ; round++) {
      stores.clock.nowMs += EXPIRED_MS;
      queues.usage.push(...(await this.sweep(0)));
      queues.charges.push(...((await stores.recordUsage(queues.usage.splice(0), null)) ?? []));
      if (queues.charges.length > 0) queues.news.push(...((await stores.gather(queues.charges.splice(0), null)) ?? []));
      queues.news.push(...((await stores.post(null)) ?? []));
      await this.deliverNews(ALL);
      const holds = await Promise.all(
        this.tenants.map((tenantId) => stores.admission.snapshot({ tenantId, limit: 1 })),
      );
      if (holds.flat().every(({ pendingHolds, settledHolds }) => pendingHolds + settledHolds === 0)) return;
      assert(round < MAX_ROUNDS, 'every hold ends, and is released');
    }
  }

  private async booksAreTheTruth(): Promise<void> {
    for (const tenantId of this.tenants) {
      const [snapshot] = await this.stores.admission.snapshot({ tenantId, limit: 1 });
      this.truth.isIn(tenantId, await this.stores.books(tenantId), snapshot?.balanceNanos ?? 0n);
    }
  }

  private pick(pick: number): Running | undefined {
    return [...this.running.values()][pick % Math.max(1, this.running.size)];
  }

  /** So many tokens of output, or as many as the hold covers. */
  private covered({ holdNanos, promptTokens, draft: { price } }: Running, tokens: number): TokenCounts {
    const femtos = holdNanos * FEMTOS_PER_NANO - BigInt(promptTokens) * BigInt(price.inputFemtos);
    const most = price.outputFemtos === '0' ? tokens : Number(femtos / BigInt(price.outputFemtos));
    return { promptTokens, cachedTokens: 0, completionTokens: Math.min(tokens, most) };
  }
}
