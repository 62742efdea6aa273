import { parseBalanceUpdate } from '@tollgate/admission';
import { newId, type Charge, type BalanceUpdate, type UsageEvent } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import assert from 'node:assert/strict';
import type { Command } from './commands';
import { Gateways } from './gateways';
import { Operator } from './operator';
import type { Stores } from './stores';
import { Truth } from './truth';

/** Longer than the lease, so holds without heartbeats have expired. */
const EXPIRED_MS = 15_000;
/** The maximum number of rounds of sweeping and delivering until nothing is left to do. */
const MAX_ROUNDS = 4;
const ALL = 10_000;

/**
 * The world around the stores: gateways that die, time, and queues that deliver in any order and any number of times.
 * It keeps the truth, which is the charge that each request must have in the end. After each command nothing is
 * overdrawn, no budget is exceeded and no suspended tenant is admitted. In the end the books match the truth exactly.
 */
export class World {
  private readonly tenants = [newId('ten'), newId('ten')];
  private readonly keys = [newId('key'), newId('key')];
  private readonly truth = new Truth();
  /** Requests whose events reach metering even if the admission store is emptied. */
  private readonly told = new Set<string>();
  private readonly operator: Operator;
  private readonly gateways: Gateways;
  private readonly queues = { usage: [] as UsageEvent[], charges: [] as Charge[], updates: [] as BalanceUpdate[] };

  constructor(private readonly stores: Stores) {
    this.operator = new Operator(stores, this.truth);
    this.gateways = new Gateways(this.tenants, this.keys, { stores, truth: this.truth, operator: this.operator });
  }

  /** Applies the commands in order, then delivers and sweeps everything, and compares the books with the truth. */
  async run(commands: readonly Command[]): Promise<void> {
    await this.apply({ do: 'topUp', tenant: 0, cents: 25, ref: 99 });
    await this.deliverBalanceUpdates(ALL);
    for (const command of commands) {
      await this.apply(command);
      await this.nothingIsOverdrawn();
    }
    await this.comeToRest();
    await this.booksAreTheTruth();
    // Closes every used month, and bills it as far as the credit allows.
    const now = new Date(this.stores.clock.nowMs);
    this.stores.clock.nowMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 2);
    this.queues.updates.push(...((await this.stores.close(null)) ?? []));
    await this.deliverBalanceUpdates(ALL);
    await this.booksAreTheTruth();
  }

  private async apply(command: Command): Promise<void> {
    const { stores, queues } = this;
    switch (command.do) {
      case 'topUp':
      case 'refund':
      case 'adjust':
        queues.updates.push(...(await this.operator.moveMoney(this.tenants[command.tenant]!, command)));
        return;
      case 'suspend': {
        const { tenant, suspended, late } = command;
        queues.updates.push(...(await this.operator.suspend(this.tenants[tenant]!, suspended, late)));
        return;
      }
      case 'setBudget': {
        const keyId = command.key === null ? null : this.keys[command.key]!;
        const set = await this.operator.setBudget(this.tenants[command.tenant]!, { keyId, cents: command.cents });
        queues.updates.push(...set);
        return;
      }
      case 'price':
      case 'budget':
      case 'admit':
      case 'extend':
      case 'progress':
      case 'settle':
      case 'void':
      case 'killGateway':
        this.tell(await this.gateways.apply(command));
        return;
      case 'usage':
        return this.deliver(command, queues.usage, (batch) => stores.recordUsage(batch, command.crash), queues.charges);
      case 'charges':
        return this.deliver(command, queues.charges, (batch) => stores.gather(batch, command.crash), queues.updates);
      case 'updates':
        return this.deliver(command, queues.updates, (batch) => this.applyBalanceUpdates(batch), []);
      case 'close':
      case 'post': {
        const updates = (await stores[command.do](command.crash)) ?? [];
        queues.updates.push(...updates, ...(command.twice ? updates : []));
        return;
      }
      case 'sweep': {
        const swept = await this.sweep(command.confirmAfterMs);
        // Its process got the records and died before it published them.
        if (!command.lost) this.tell(swept);
        return;
      }
      case 'empty':
        return this.empty();
      case 'wait':
        stores.clock.nowMs += command.ms;
    }
  }

  /** Empties the admission store. Requests that only it knew were served and are never charged. */
  private async empty(): Promise<void> {
    for (const tenantId of this.tenants) {
      // Not while it asks the books, because the answer would be written at an unknown time after the emptying.
      await this.gateways.makeKnown(tenantId);
      const [snapshot] = await this.stores.admission.snapshot({ tenantId, limit: 1 });
      if (snapshot) this.truth.lost(tenantId, snapshot.pendingNanos + snapshot.settledNanos);
    }
    await this.stores.empty!();
    this.truth.forgetAllBut(this.told);
    this.gateways.loseHolds();
    // A store distinguishes its epochs by the times at which they began.
    this.stores.clock.nowMs++;
  }

  private tell(events: readonly UsageEvent[]): void {
    this.queues.usage.push(...events);
    for (const { id } of events) this.told.add(id);
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

  private async applyBalanceUpdates(batch: readonly BalanceUpdate[]): Promise<never[]> {
    await this.stores.admission.applyBalanceUpdates(batch.map(parseBalanceUpdate));
    return [];
  }

  private async deliverBalanceUpdates(count: number): Promise<void> {
    const batch = this.queues.updates.splice(0, count);
    if (batch.length > 0) await this.applyBalanceUpdates(batch);
  }

  /** Asserts that payments cover all past and possible usage, at any time, even while updates are out of order. */
  private async nothingIsOverdrawn(): Promise<void> {
    for (const tenantId of this.tenants) {
      const [snapshot] = await this.stores.admission.snapshot({ tenantId, limit: 1 });
      if (!snapshot) continue;
      assert.equal(snapshot.pendingNanos, snapshot.holdRowsPendingNanos);
      assert.equal(snapshot.settledNanos, snapshot.holdRowsSettledNanos);
      const left = this.truth.leftNanos(tenantId) - snapshot.pendingNanos;
      const may = this.truth.debtNanos(tenantId) + this.truth.mayExceedNanos(tenantId);
      assert(left >= -may, `overdrawn by ${-left} nanos, of which ${may} are an allowed debt or lost with the store`);
    }
  }

  /** Kills the gateways, empties the queues, and lets nothing crash any more. */
  private async comeToRest(): Promise<void> {
    const { stores, queues } = this;
    this.gateways.killAll();
    for (let round = 1; ; round++) {
      stores.clock.nowMs += EXPIRED_MS;
      this.tell(await this.sweep(0));
      queues.charges.push(...((await stores.recordUsage(queues.usage.splice(0), null)) ?? []));
      if (queues.charges.length > 0)
        queues.updates.push(...((await stores.gather(queues.charges.splice(0), null)) ?? []));
      queues.updates.push(...((await stores.post(null)) ?? []));
      await this.deliverBalanceUpdates(ALL);
      const holds = await Promise.all(
        this.tenants.map((tenantId) => stores.admission.snapshot({ tenantId, limit: 1 })),
      );
      if (holds.flat().every(({ pendingHolds, settledHolds }) => pendingHolds + settledHolds === 0)) return;
      assert(round < MAX_ROUNDS, 'every hold ends and is released');
    }
  }

  private async booksAreTheTruth(): Promise<void> {
    for (const tenantId of this.tenants) {
      const books = await this.stores.books(tenantId);
      // The store asks the books by itself.
      await eventually(async () => {
        const [snapshot] = await this.stores.admission.snapshot({ tenantId, limit: 1 });
        const unknown = this.stores.empty ? null : 0n;
        this.truth.isIn(tenantId, books, snapshot?.balanceNanos ?? unknown);
      });
    }
  }
}
