import type { UsageEvent } from '@tollgate/contracts';
import { retryOnTimeout } from '@tollgate/postgres';
import { countForbidden } from '../admission-metrics';
import {
  AdmissionStore,
  DEFAULT_CLAIM_LIMITS,
  DEFAULT_LEASE_MS,
  type AdmitRequest,
  type AdmitResult,
  type AnswerRequest,
  type ClaimLimits,
  type DeliveredUsage,
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
import { budgetNanos, cappedNanos } from '../amounts';
import { admitMistake, lookMistake, settleMistake } from '../caller-mistakes';
import { sendFaultless, type ItemFailure } from '../item-failures';
import { readAdmit, readExtend, readLook, readSettle, readWithdraw } from '../store-answers';
import { sweptEvents } from '../swept-records';
import { admitCall } from './admit-call';
import { Claims, settleCall } from './claims';
import { Connections, type Row } from './connections';
import { eachIdOnce } from './each-id-once';
import { callExpectedEnds } from './expected-ends-call';
import { HoldCounts } from './hold-counts';
import { inOrder } from './in-order';
import { SharedProbe } from '../shared-probe';
import { lookCall } from './look-call';
import { readHolds } from './read-holds';
import { readSnapshot } from './read-snapshot';
import { repairCall } from './repair-call';
import { dropStuckHolds } from './stuck-holds';
import { takeCall } from './take-call';
import { jsonTexts, numbers, texts } from './sql-arrays';

export interface PostgresAdmissionOptions {
  /** The URL of the database whose `admission` schema is migrated. */
  url: string;
  leaseMs?: number;
  /** Epoch milliseconds; PostgreSQL's clock when absent. For tests. */
  now?: () => number;
  /** 1 s when absent. For tests. */
  callTimeoutMs?: number;
  /** Those that differ from DEFAULT_CLAIM_LIMITS. */
  claims?: Partial<ClaimLimits>;
}

/**
 * The admission store as SQL functions (functions/): one call for everything that has gathered, which locks the
 * tenants' rows in ascending order. See admission-store.ts for the guarantees, admit.sql for the rules of admission,
 * and end_holds.sql for the end of a hold.
 */
export class PostgresAdmissionStore extends AdmissionStore {
  private readonly connections: Connections;
  private readonly holdCounts: HoldCounts;
  override readonly leaseMs: number;
  private readonly now: () => number | null;
  private readonly claimLimits: ClaimLimits;
  private readonly claims: Claims;
  private readonly writes = new SharedProbe(() => this.connections.probeWrite());

  constructor(options: PostgresAdmissionOptions) {
    super();
    this.connections = new Connections(options.url, options.callTimeoutMs);
    this.holdCounts = new HoldCounts(this.connections);
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.now = options.now ?? (() => null);
    this.claimLimits = { ...DEFAULT_CLAIM_LIMITS, ...options.claims };
    this.claims = new Claims(this.connections, this.claimLimits, this.now);
  }

  admit(requests: readonly AdmitRequest[]): Promise<(AdmitResult | ItemFailure)[]> {
    return eachIdOnce(
      requests,
      ({ draft }) => draft.id,
      (once) => sendFaultless(once, admitMistake, (sent) => this.admitFaultless(sent)),
    );
  }

  private async admitFaultless(requests: readonly AdmitRequest[]): Promise<(AdmitResult | RangeError)[]> {
    const rows = await this.connections.call(admitCall(requests, this.now(), this.leaseMs, this.claimLimits));
    return inOrder(rows, (values) => readAdmit(values));
  }

  look(requests: readonly LookRequest[]): Promise<(LookResult | ItemFailure)[]> {
    return sendFaultless(requests, lookMistake, async (sent) =>
      inOrder(await this.connections.call(lookCall(sent, this.now())), readLook),
    );
  }

  expectedEnds(tenantIds: readonly string[]): Promise<ExpectedEnd[][]> {
    return callExpectedEnds(this.connections, tenantIds, this.now());
  }

  takeCall(call: ManagementCall): Promise<number> {
    return takeCall(this.connections, call, this.now());
  }

  recall(requests: readonly RecallRequest[]): Promise<RecallResult[]> {
    return this.claims.recall(requests);
  }

  answers(requests: readonly AnswerRequest[]): Promise<(string | null)[]> {
    return this.claims.answers(requests);
  }

  async extend(requests: readonly ExtendRequest[]): Promise<ExtendResult[]> {
    if (requests.length === 0) return [];
    const rows = await this.connections.call({
      name: 'extend',
      text: 'SELECT * FROM extend($1,$2,$3,$4,$5)',
      values: [
        this.now(),
        texts(requests, (request) => request.id),
        texts(requests, (request) => request.tenantId),
        numbers(requests, (request) => cappedNanos(request.wantNanos)),
        numbers(requests, (request) => cappedNanos(request.minNanos)),
      ],
    });
    const results = inOrder(rows, readExtend);
    for (const { kind } of results) if (kind === 'forbidden') countForbidden('extend');
    return results;
  }

  async progress(progress: readonly Progress[]): Promise<boolean[]> {
    if (progress.length === 0) return [];
    const rows = await this.connections.call({
      name: 'progress',
      text: 'SELECT * FROM progress($1,$2,$3,$4,$5)',
      values: [
        this.now(),
        this.leaseMs,
        texts(progress, (one) => one.id),
        texts(progress, (one) => one.tenantId),
        jsonTexts(progress, ({ delivered }) => delivered && deliveredJson(delivered)),
      ],
    });
    return this.positions('progress', rows, progress.length);
  }

  settle(settlements: readonly Settlement[]): Promise<(SettleResult | ItemFailure)[]> {
    return eachIdOnce(
      settlements,
      ({ event }) => event.id,
      (once) => sendFaultless(once, settleMistake, (sent) => this.settleFaultless(sent)),
    );
  }

  private async settleFaultless(settlements: readonly Settlement[]): Promise<(SettleResult | RangeError)[]> {
    // Durable before anyone gets an answer, including what an earlier call settled. The tenants' rows are unlocked
    // before the wait for the disk.
    const rows = await this.connections.callDurably(settleCall(settlements, this.now(), this.claimLimits));
    return inOrder(rows, (values, index) => {
      if (values[0] === 'forbidden') countForbidden('settle');
      return readSettle(values, settlements[index]!.event);
    });
  }

  void(holds: readonly { id: string; tenantId: string }[]): Promise<boolean[]> {
    return eachIdOnce(
      holds,
      ({ id }) => id,
      (once) => this.voidOnce(once),
    );
  }

  private async voidOnce(holds: readonly { id: string; tenantId: string }[]): Promise<boolean[]> {
    if (holds.length === 0) return [];
    const rows = await this.connections.call({
      name: 'void_holds',
      text: 'SELECT * FROM void_holds($1,$2,$3)',
      values: [this.now(), texts(holds, (hold) => hold.id), texts(holds, (hold) => hold.tenantId)],
    });
    return this.positions('void', rows, holds.length);
  }

  async sweep({ limit, confirmAfterMs }: SweepOptions): Promise<UsageEvent[]> {
    // Durable: a crash must not undo the settlement of a published event.
    const rows = await this.connections.callDurablyInBackground({
      name: 'sweep',
      text: 'SELECT * FROM sweep($1,$2,$3)',
      values: [this.now(), limit, confirmAfterMs],
    });
    await this.holdCounts.refresh(this.now());
    await this.claims.forgetOld();
    return sweptEvents(rows.map(([record]) => record));
  }

  async applyBalanceUpdates(updates: readonly ParsedBalanceUpdate[]): Promise<void> {
    if (updates.length === 0) return;
    await this.applyBudgets(updates);
    const releases = updates.flatMap(({ tenantId, releases }) => releases.map((id) => ({ tenantId, id })));
    await this.connections.callInBackground({
      name: 'apply_balance_updates',
      text: 'SELECT apply_balance_updates($1,$2,$3,$4,$5,$6)',
      values: [
        texts(updates, (one) => one.tenantId),
        numbers(updates, (one) => one.version),
        numbers(updates, (one) => cappedNanos(one.balanceNanos)),
        numbers(updates, (one) => one.suspended),
        texts(releases, (release) => release.tenantId),
        texts(releases, (release) => release.id),
      ],
    });
  }

  async withdraw({ tenantId, version, nanos }: Withdrawal): Promise<WithdrawResult> {
    const [row] = await this.connections.callDurablyInBackground({
      name: 'withdraw',
      text: 'SELECT * FROM withdraw($1,$2,$3)',
      values: [tenantId, String(version), String(cappedNanos(nanos))],
    });
    return readWithdraw(row!);
  }

  async repair(repair: Repair): Promise<RepairResult> {
    const droppedHolds = await dropStuckHolds(this.connections, repair.tenantId, this.now());
    await this.connections.callDurablyInBackground(repairCall(repair, this.now()));
    return { droppedHolds };
  }

  private async applyBudgets(updates: readonly ParsedBalanceUpdate[]): Promise<void> {
    const changes = updates.flatMap(({ tenantId, budgets = [] }) => budgets.map((budget) => ({ tenantId, ...budget })));
    if (changes.length === 0) return;
    await this.connections.callInBackground({
      name: 'apply_budgets',
      text: 'SELECT apply_budgets($1,$2,$3,$4)',
      values: [
        texts(changes, ({ tenantId }) => tenantId),
        texts(changes, ({ keyId }) => keyId ?? ''),
        numbers(changes, ({ version }) => version),
        numbers(changes, budgetNanos),
      ],
    });
  }

  async snapshot(options: { tenantId?: string; after?: string; limit: number }): Promise<Snapshot[]> {
    const rows = await this.connections.callInBackground({
      name: 'snapshot',
      text: 'SELECT * FROM snapshot($1,$2,$3)',
      values: [options.tenantId ?? null, options.after ?? null, options.limit],
    });
    return rows.map(readSnapshot);
  }

  holds(query: HoldsQuery): Promise<HoldView[]> {
    return readHolds(this.connections, query, this.now());
  }

  /** Rejects when the database cannot be reached or was not migrated. */
  async start(): Promise<void> {
    await retryOnTimeout(() => this.connections.call({ name: 'start', text: 'SELECT FROM hold LIMIT 0', values: [] }));
  }

  check(): Promise<void> {
    return this.writes.check();
  }

  async close(): Promise<void> {
    await this.connections.close();
  }

  private positions(operation: 'progress' | 'void', rows: readonly Row[], count: number): boolean[] {
    const done = new Array<boolean>(count).fill(false);
    for (const [n] of rows) done[Number(n) - 1] = true;
    countForbidden(operation, count - rows.length);
    return done;
  }
}

/** The members of the event of an expired hold, which replace the members of its draft. */
function deliveredJson({ served, costNanos, ...tokens }: DeliveredUsage): object {
  return { ...tokens, costNanos: String(cappedNanos(costNanos)), ...served };
}
