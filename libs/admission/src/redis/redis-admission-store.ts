import { countForbidden } from '../admission-metrics';
import type { UnavailableError, UsageEvent } from '@tollgate/contracts';
import { CALL_TIMEOUT_MS, RedisLink } from '@tollgate/redis';
import {
  AdmissionStore,
  DEFAULT_CLAIM_LIMITS,
  DEFAULT_LEASE_MS,
  type AdmitRequest,
  type AdmitResult,
  type AnswerRequest,
  type ClaimLimits,
  type ExpectedEnd,
  type ExtendRequest,
  type ExtendResult,
  type HoldsQuery,
  type HoldView,
  type LookRequest,
  type LookResult,
  type ParsedBalanceUpdate,
  type Progress,
  type RecallRequest,
  type RecallResult,
  type Repair,
  type RepairResult,
  type Settlement,
  type SettleResult,
  type Snapshot,
  type SweepOptions,
  type Withdrawal,
  type WithdrawResult,
} from '../admission-store';
import type { ManagementCall } from '../operations/call-rate';
import type { RefusableOperation } from '../operations/hold-states';
import { SharedProbe } from '../shared-probe';
import { admitMistake, settleMistake } from '../caller-mistakes';
import { sendFaultless, TenantUnknownError, type ItemFailure } from '../item-failures';
import { readExtend, readSettle, readWithdraw, type Value } from '../store-answers';
import { admitArguments, readAdmitReply } from './admit-call';
import { allOrNothing, callByTenant, PROBE, tenantKeys, type Group } from './by-tenant';
import { admissionLibrary } from './admission-library';
import { CreditRestorer } from './credit-restorer';
import { balanceUpdateValues, extensionValues, nanos, progressValues, settleArguments } from './json-arguments';
import { callExpectedEnds } from './expected-ends-call';
import { callLook } from './look-call';
import { readHolds } from './read-holds';
import { callAnswers, callRecall } from './recall-call';
import { callRepair } from './repair';
import { probeWrites, REPLICAS_TIMEOUT_MS } from './probe-writes';
import { readSnapshots } from './snapshots';
import { takeCall } from './take-call';
import { sweepTenants } from './sweep-tenants';
import type { RedisAdmissionOptions } from './redis-admission-options';
import { TenantRegistry } from './tenant-registry';

/** The extra time of a request that waited behind another call. With it a call still ends within a second. */
const QUEUE_TIME_MS = 250;
/** Sweep, balance updates and snapshot have their own connection, so that requests do not wait for them. */
const BACKGROUND_TIMEOUT_MS = 10_000;

/**
 * The admission store as Redis Functions (lua/): one round trip for everything that has gathered, and one function call
 * for each tenant, whose keys share a slot. See admission-store.ts for the guarantees and lua/05_admit.lua for the
 * rules. Durable means acknowledged by Redis: its `appendfsync` setting decides what a crash of Redis can lose.
 */
export class RedisAdmissionStore extends AdmissionStore {
  override readonly asksForTenants: boolean;
  private readonly link: RedisLink;
  private readonly background: RedisLink;
  /** `link`, unless settlements wait for replicas. */
  private readonly settling: RedisLink;
  private readonly settledReplicas: number;
  private readonly registry: TenantRegistry;
  private readonly restorer: CreditRestorer | undefined;
  override readonly leaseMs: number;
  override readonly answersWithinMs: { admit: number; settle: number };
  private readonly now: () => number | '';
  private readonly claimLimits: ClaimLimits;
  private readonly writes = new SharedProbe(() => probeWrites(this.settling, this.settledReplicas));

  constructor(options: RedisAdmissionOptions) {
    super();
    const { url, natMap, callTimeoutMs = CALL_TIMEOUT_MS } = options;
    const library = options.library ?? admissionLibrary();
    const common = { url, library, probe: PROBE, callTimeoutMs, ...(natMap ? { natMap } : {}) };
    this.link = new RedisLink({ ...common, name: 'tollgate-admission' });
    const background = { name: 'tollgate-admission-background', callTimeoutMs: BACKGROUND_TIMEOUT_MS };
    this.background = new RedisLink({ ...common, ...background });
    this.settledReplicas = options.settledReplicas ?? 0;
    this.settling =
      this.settledReplicas > 0 ? new RedisLink({ ...common, name: 'tollgate-admission-settlements' }) : this.link;
    const admit = callTimeoutMs + QUEUE_TIME_MS;
    this.answersWithinMs = { admit, settle: admit + (this.settledReplicas > 0 ? REPLICAS_TIMEOUT_MS : 0) };
    this.registry = new TenantRegistry(this.link, this.background);
    this.restorer =
      options.onUnknownTenant &&
      new CreditRestorer(this.background, this.registry, options.onUnknownTenant, () => this.now());
    this.asksForTenants = this.restorer !== undefined;
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.now = options.now ?? (() => '');
    this.claimLimits = { ...DEFAULT_CLAIM_LIMITS, ...options.claims };
  }

  admit(requests: readonly AdmitRequest[]): Promise<(AdmitResult | ItemFailure)[]> {
    return sendFaultless(requests, admitMistake, (sent) => this.admitFaultless(sent));
  }

  private async admitFaultless(requests: readonly AdmitRequest[]): Promise<(AdmitResult | ItemFailure)[]> {
    const telling = this.registry.tell(requests.map(({ draft }) => draft.tenantId));
    if (telling) await telling;
    return callByTenant(
      this.link,
      'admit',
      requests,
      ({ draft }) => draft.tenantId,
      (items) => admitArguments(items, this.now(), this.leaseMs, this.restorer !== undefined, this.claimLimits),
      (reply, group) => this.readAdmitted(reply, group),
      ({ claim }) => claim !== undefined,
    );
  }

  look(requests: readonly LookRequest[]): Promise<(LookResult | ItemFailure)[]> {
    return callLook(this.link, requests, {
      now: this.now(),
      mustBeKnown: this.restorer !== undefined,
      unknown: (tenantId) => this.unknown(tenantId),
    });
  }

  expectedEnds(tenantIds: readonly string[]): Promise<(ExpectedEnd[] | UnavailableError)[]> {
    return callExpectedEnds(this.link, tenantIds, this.now());
  }

  recall(requests: readonly RecallRequest[]): Promise<(RecallResult | UnavailableError)[]> {
    return callRecall(this.settling, requests, this.now(), this.claimLimits.keepMs, this.settledReplicas);
  }

  answers(requests: readonly AnswerRequest[]): Promise<(string | null | UnavailableError)[]> {
    return callAnswers(this.link, requests);
  }

  takeCall(call: ManagementCall): Promise<number> {
    return takeCall(this.link, call, this.now());
  }

  /** Does not fail as a whole when a shard is down: a repeat would extend the holds of the other shards twice. */
  extend(requests: readonly ExtendRequest[]): Promise<(ExtendResult | UnavailableError)[]> {
    return callByTenant<ExtendRequest, ExtendResult>(
      this.link,
      'extend',
      requests,
      (request) => request.tenantId,
      (items) => [this.now(), JSON.stringify(items.map(extensionValues))],
      (reply, { items }) => items.map((_, i) => this.readExtended((reply as Value[]).slice(i * 3))),
    );
  }

  progress(progress: readonly Progress[]): Promise<(boolean | UnavailableError)[]> {
    return callByTenant<Progress, boolean>(
      this.link,
      'progress',
      progress,
      (one) => one.tenantId,
      (items) => [this.now(), this.leaseMs, JSON.stringify(items.map(progressValues))],
      (reply) => (reply as number[]).map((pending) => this.count('progress', pending === 1)),
    );
  }

  settle(settlements: readonly Settlement[]): Promise<(SettleResult | ItemFailure)[]> {
    return sendFaultless(settlements, settleMistake, (sent) => this.settleFaultless(sent));
  }

  private async settleFaultless(settlements: readonly Settlement[]): Promise<(SettleResult | ItemFailure)[]> {
    const answers = await callByTenant<Settlement, SettleResult>(
      this.settling,
      'settle',
      settlements,
      ({ event }) => event.tenantId,
      (items) => settleArguments(items, this.now(), this.claimLimits),
      (reply, { items }) =>
        items.map(({ event }, i) => {
          const values = (reply as Value[]).slice(i * 2, i * 2 + 2);
          this.count('settle', values[0] !== 'forbidden');
          return readSettle(values, event);
        }),
      ({ answer }) => answer !== undefined,
    );
    // Without enough replicas the settlements stand, and their repeat waits again.
    const missed = await this.missedReplicas(settlements.map(({ event }) => event.tenantId));
    return answers.map((answer, i) => missed[i] ?? answer);
  }

  async void(holds: readonly { id: string; tenantId: string }[]): Promise<boolean[]> {
    const results = await callByTenant<{ id: string; tenantId: string }, boolean>(
      this.link,
      'void',
      holds,
      (hold) => hold.tenantId,
      (items) => [this.now(), ...items.map((hold) => hold.id)],
      (reply, { items }) => items.map((_, i) => this.count('void', (reply as (string | null)[])[i * 2] === 'void')),
    );
    return allOrNothing(results);
  }

  sweep(options: SweepOptions): Promise<UsageEvent[]> {
    return sweepTenants(this.background, this.registry, options, this.now());
  }

  async applyBalanceUpdates(updates: readonly ParsedBalanceUpdate[]): Promise<void> {
    await this.registry.tell(updates.map((one) => one.tenantId));
    const results = await callByTenant<ParsedBalanceUpdate, true>(
      this.background,
      'apply_balance_updates',
      updates,
      (one) => one.tenantId,
      (items) => [JSON.stringify(items.map(balanceUpdateValues))],
      (restored, { tenantId, items }) => {
        if (restored === 0) this.restorer?.restoreInBackground(tenantId);
        return items.map(() => true);
      },
    );
    allOrNothing(results);
  }

  async withdraw({ tenantId, version, nanos: taken }: Withdrawal): Promise<WithdrawResult> {
    await this.registry.tell([tenantId]);
    const values = (await this.settling.one({
      function: 'withdraw',
      keys: tenantKeys(tenantId),
      args: [this.restorer ? '1' : '', String(version), String(nanos(taken))],
    })) as Value[];
    if (values[0] === 'unknown') throw this.unknown(tenantId);
    const [missed] = await this.missedReplicas([tenantId]);
    if (missed) throw missed;
    return readWithdraw(values);
  }

  async repair(repair: Repair): Promise<RepairResult> {
    await this.registry.tell([repair.tenantId]);
    return callRepair(this.background, repair, this.now());
  }

  snapshot(options: { tenantId?: string; after?: string; limit: number }): Promise<Snapshot[]> {
    return readSnapshots(this.background, this.registry, options);
  }

  holds(query: HoldsQuery): Promise<HoldView[]> {
    return readHolds(this.background, query, this.now());
  }

  /** Rejects when Redis is down, refuses user or password, or has no Functions. Names the setting and the cure. */
  async start(): Promise<void> {
    await Promise.all([...this.links()].map((link) => link.start()));
  }

  /** In a cluster: rejects when no shard answers, or none can write. */
  async check(): Promise<void> {
    await Promise.all([this.link.check(), this.settling.check(), this.writes.check()]);
  }

  close(): Promise<void> {
    for (const link of this.links()) link.close();
    return Promise.resolve();
  }

  /** For each tenant, the error if its writes have not reached the required number of replicas. */
  private async missedReplicas(tenantIds: readonly string[]): Promise<(UnavailableError | undefined)[]> {
    if (this.settledReplicas === 0) return [];
    const keys = tenantIds.map((tenantId) => tenantKeys(tenantId)[0]!);
    return this.settling.waitForReplicas(keys, this.settledReplicas, REPLICAS_TIMEOUT_MS);
  }

  private links(): Set<RedisLink> {
    return new Set([this.link, this.settling, this.background]);
  }

  private readAdmitted(reply: unknown, { tenantId, items }: Group<AdmitRequest>): (AdmitResult | ItemFailure)[] {
    const read = readAdmitReply(reply, items);
    if (!read.known) return new Array<ItemFailure>(items.length).fill(this.unknown(tenantId));
    if (read.created) void this.registry.tellAgain(tenantId);
    return read.results;
  }

  /** Asks for the credit of an unknown tenant. Returns the error to reject with until it is known. */
  private unknown(tenantId: string): TenantUnknownError {
    const known = this.restorer!.restore(tenantId);
    // The caller may wait for it, but need not.
    known.catch(() => {});
    return new TenantUnknownError(tenantId, known);
  }

  private readExtended(values: readonly Value[]): ExtendResult {
    this.count('extend', values[0] !== 'forbidden');
    return readExtend(values);
  }

  private count(operation: RefusableOperation, allowed: boolean): boolean {
    if (!allowed) countForbidden(operation);
    return allowed;
  }
}
