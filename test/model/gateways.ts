import { TenantUnknownError, type AdmitRequest, type AdmitResult } from '@tollgate/admission';
import { costNanos, FEMTOS_PER_NANO, type UsageEvent } from '@tollgate/contracts';
import assert from 'node:assert/strict';
import { toUsageEvent } from '../../apps/gateway/src/settle/usage-event';
import { stamp, type Command } from './commands';
import type { Operator } from './operator';
import { admitRequest, covered, heldNanos, type Running } from './running';
import type { Stores } from './stores';
import type { Truth } from './truth';

type OfGateways = Extract<
  Command,
  { do: 'price' | 'budget' | 'admit' | 'extend' | 'progress' | 'settle' | 'void' | 'killGateway' }
>;

/** Attempts of one request. */
const MAX_ASKED = 10;

/** Two gateways that can be killed, and the requests that they believe to be running. */
export class Gateways {
  private readonly running = new Map<string, Running>();
  private price = stamp(1_000_000n, 0n);
  private readonly budgets: { key: bigint | null; tenant: bigint | null } = { key: null, tenant: null };
  private admitted = 0;
  private readonly stores: Stores;
  private readonly truth: Truth;
  private readonly operator: Operator;

  constructor(
    private readonly tenants: readonly string[],
    private readonly keys: readonly string[],
    around: { stores: Stores; truth: Truth; operator: Operator },
  ) {
    ({ stores: this.stores, truth: this.truth, operator: this.operator } = around);
  }

  /** Returns the events that are now published to metering. */
  async apply(command: OfGateways): Promise<UsageEvent[]> {
    switch (command.do) {
      case 'price':
        this.price = stamp(command.output, command.input);
        break;
      case 'budget':
        this.budgets[command.of] = command.nanos;
        break;
      case 'admit':
        await this.admit(command);
        break;
      case 'extend':
        await this.extend(command);
        break;
      case 'progress':
        await this.progress(command);
        break;
      case 'settle':
        return this.settle(command);
      case 'void':
        await this.void(command);
        break;
      case 'killGateway':
        for (const [id, { gateway }] of this.running) if (gateway === command.gateway) this.running.delete(id);
    }
    return [];
  }

  killAll(): void {
    this.running.clear();
  }

  /** Marks all requests, because the store was emptied. */
  loseHolds(): void {
    for (const request of this.running.values()) request.lost = true;
  }

  /** Admits an empty request, so that the store asks the books for the tenant. */
  async makeKnown(tenantId: string): Promise<void> {
    const request = this.request(tenantId, this.keys[0]!, { prompt: 0, want: 0, least: 0 });
    await this.ask(request);
    await this.stores.admission.void([{ id: request.draft.id, tenantId }]);
  }

  private async admit({ tenant, key, ...size }: Extract<Command, { do: 'admit' }>): Promise<void> {
    const nowMs = this.stores.clock.nowMs;
    const request = this.request(this.tenants[tenant]!, this.keys[key]!, size);
    const { draft, promptTokens } = request;
    const result = await this.ask(request);
    this.operator.mayAdmit(request, result);
    if (result.kind !== 'held') return;
    const { holdNanos, storeEpoch } = result;
    const gateway = this.admitted++ % 2;
    const known = { request, draft, gateway, aliveMs: nowMs, promptTokens, holdNanos, storeEpoch, lost: false };
    this.running.set(draft.id, known);
    if (holdNanos > 0n) this.withinBudgets(request);
  }

  private request(tenantId: string, keyId: string, size: { prompt: number; want: number; least: number }) {
    const { price, budgets } = this;
    return admitRequest({ tenantId, keyId, price, budgets, nowMs: this.stores.clock.nowMs }, size);
  }

  /** Like AdmissionClient: tries again when the store has asked the books for the tenant. */
  private async ask(request: AdmitRequest): Promise<AdmitResult> {
    const admit = async () => (await this.stores.admission.admit([request]))[0] as AdmitResult | Error;
    let result = await admit();
    for (let asked = 0; result instanceof TenantUnknownError && asked < MAX_ASKED; asked++) {
      // If the books did not answer in time, the store asks them again.
      await result.known.catch(() => {});
      result = await admit();
    }
    if (result instanceof Error) throw result;
    return result;
  }

  private async extend({ pick, tokens }: Extract<Command, { do: 'extend' }>): Promise<void> {
    const request = this.pick(pick);
    if (!request || request.lost) return;
    const { id, tenantId, price } = request.draft;
    const perToken = BigInt(price.outputFemtos) / FEMTOS_PER_NANO;
    const wantNanos = perToken * BigInt(tokens);
    const [result] = await this.stores.admission.extend([{ id, tenantId, wantNanos, minNanos: perToken }]);
    if (result instanceof Error) throw result;
    if (result!.kind === 'extended') {
      request.holdNanos = result!.holdNanos;
      if (result!.grantedNanos > 0n) this.withinBudgets(request.request);
    }
    if (result!.kind === 'forbidden') this.running.delete(id);
  }

  private async progress({ pick, tokens }: Extract<Command, { do: 'progress' }>): Promise<void> {
    const request = this.pick(pick);
    if (!request || request.lost) return;
    const { id, tenantId, price } = request.draft;
    const counts = covered(request, tokens);
    const delivered = { ...counts, costNanos: costNanos(counts, price) };
    const [pending] = await this.stores.admission.progress([{ id, tenantId, delivered }]);
    if (!pending) return void this.running.delete(id);
    request.aliveMs = this.stores.clock.nowMs;
    this.truth.progressed(id, counts);
  }

  private async settle({
    pick,
    tokens,
    overrun,
    emitted,
    again,
  }: Extract<Command, { do: 'settle' }>): Promise<UsageEvent[]> {
    const request = this.pick(pick);
    if (!request) return [];
    const { id } = request.draft;
    const counts = overrun
      ? { promptTokens: request.promptTokens, cachedTokens: 0, completionTokens: tokens + 50 }
      : covered(request, tokens);
    const endedMs = this.stores.clock.nowMs;
    const { draft, holdNanos } = request;
    const cost = costNanos(counts, draft.price);
    const delivered = { tokens: counts, cost, estimated: false, outcome: 'complete' } as const;
    const event = toUsageEvent(draft, { ...delivered, holdNanos, endedMs });
    this.running.delete(id);
    // The hold expired and was charged by the sweeper before the store was emptied. Metering counts its id once.
    if (request.lost && this.truth.hasEnded(id)) return [];
    let standing = event;
    for (let time = 0; time < (again ? 2 : 1); time++) {
      const [result] = await this.stores.admission.settle([{ event, storeEpoch: request.storeEpoch }]);
      assert(result && !(result instanceof Error), 'a cost is capped by its hold, and the store answers');
      assert.equal(result.kind === 'lost', request.lost, 'a hold is lost with its store, and only then');
      if (result.kind === 'forbidden') return [];
      standing = this.truth.ended(result.kind === 'lost' ? event : result.event);
    }
    // The last byte is sent now. The gateway may or may not publish the event.
    return emitted || request.lost ? [standing] : [];
  }

  private async void({ pick }: Extract<Command, { do: 'void' }>): Promise<void> {
    const request = this.pick(pick);
    if (!request) return;
    const { id, tenantId } = request.draft;
    this.running.delete(id);
    const [done] = await this.stores.admission.void([{ id, tenantId }]);
    if (done) this.truth.isVoid(id);
  }

  private withinBudgets(request: AdmitRequest): void {
    const { tenantId } = request.draft;
    const nowMs = this.stores.clock.nowMs;
    this.operator.isWithinBudgets(request, (keyId) => heldNanos(this.running.values(), tenantId, keyId, nowMs));
  }

  private pick(pick: number): Running | undefined {
    return [...this.running.values()][pick % Math.max(1, this.running.size)];
  }
}
