import type { UsageEvent } from '@tollgate/contracts';
import { startPatiently } from '@tollgate/postgres';
import { countForbidden } from '../admission-metrics';
import {
  AdmissionStore,
  DEFAULT_LEASE_MS,
  type AdmitRequest,
  type AdmitResult,
  type ExtendRequest,
  type ExtendResult,
  type HoldsQuery,
  type HoldView,
  type LookRequest,
  type LookResult,
  type News,
  type Progress,
  type Repair,
  type RepairResult,
  type Settlement,
  type SettleResult,
  type Snapshot,
  type SweepOptions,
  type Withdrawal,
  type WithdrawResult,
} from '../admission-store';
import { admitCall, admitResult } from './admit-call';
import { admitMistake, fillIn, lookMistake, settleMistake } from './caller-mistakes';
import { Connections, type Row } from './connections';
import { eachIdOnce } from './each-id-once';
import { HoldCounts } from './hold-counts';
import { SharedProbe } from '../shared-probe';
import { lookCall, lookResult } from './look-call';
import { readSnapshot } from './read-snapshot';
import { repairCall } from './repair-call';
import { cappedNanos, monthOf, numbers, UNLIMITED_NANOS } from './sql-arrays';

export interface PostgresAdmissionOptions {
  /** Of the database with the `admission` schema migrated. */
  url: string;
  leaseMs?: number;
  /** Epoch milliseconds; Postgres's clock when absent. For tests. */
  now?: () => number;
  /** 1 s when absent. For tests. */
  callTimeoutMs?: number;
}

/** The admission store as SQL functions (functions/): one call for all that has gathered, tenants' rows locked in ascending order. Read admission-store.ts for the guarantees, admit.sql for the rules of admission, end_holds.sql for the end of a hold. */
export class PostgresAdmissionStore extends AdmissionStore {
  private readonly connections: Connections;
  private readonly holdCounts: HoldCounts;
  override readonly leaseMs: number;
  private readonly now: () => number | null;
  private readonly writes = new SharedProbe(() => this.connections.probeWrite());

  constructor(options: PostgresAdmissionOptions) {
    super();
    this.connections = new Connections(options.url, options.callTimeoutMs);
    this.holdCounts = new HoldCounts(this.connections);
    this.leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS;
    this.now = options.now ?? (() => null);
  }

  admit(requests: readonly AdmitRequest[]): Promise<(AdmitResult | RangeError)[]> {
    return eachIdOnce(
      requests,
      ({ draft }) => draft.id,
      (once) => this.admitOnce(once),
    );
  }

  private async admitOnce(requests: readonly AdmitRequest[]): Promise<(AdmitResult | RangeError)[]> {
    const results: (AdmitResult | RangeError | undefined)[] = requests.map(admitMistake);
    const sent = requests.filter((_, index) => !results[index]);
    const rows = sent.length === 0 ? [] : await this.connections.call(admitCall(sent, this.now(), this.leaseMs));
    const answers: (AdmitResult | RangeError)[] = [];
    for (const row of rows) answers[Number(row[0]) - 1] = admitResult(row);
    return fillIn(results, answers);
  }

  async look(requests: readonly LookRequest[]): Promise<(LookResult | RangeError)[]> {
    const results: (LookResult | RangeError | undefined)[] = requests.map(lookMistake);
    const sent = requests.filter((_, index) => !results[index]);
    const rows = sent.length === 0 ? [] : await this.connections.call(lookCall(sent, this.now()));
    const answers: LookResult[] = [];
    for (const row of rows) answers[Number(row[0]) - 1] = lookResult(row);
    return fillIn(results, answers);
  }

  async extend(requests: readonly ExtendRequest[]): Promise<ExtendResult[]> {
    if (requests.length === 0) return [];
    const rows = await this.connections.call({
      name: 'extend',
      text: 'SELECT * FROM extend($1,$2,$3,$4,$5)',
      values: [
        this.now(),
        requests.map((request) => request.id),
        requests.map((request) => request.tenantId),
        numbers(requests, (request) => cappedNanos(request.wantNanos)),
        numbers(requests, (request) => cappedNanos(request.minNanos)),
      ],
    });
    const results: ExtendResult[] = [];
    for (const [n, code, granted, total] of rows) {
      if (code === 'forbidden') countForbidden('extend');
      results[Number(n) - 1] =
        code === 'extended'
          ? { kind: 'extended', grantedNanos: BigInt(granted!), holdNanos: BigInt(total!) }
          : { kind: code as 'refused' | 'forbidden' };
    }
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
        progress.map((one) => one.id),
        progress.map((one) => one.tenantId),
        progress.map(
          ({ delivered }) => delivered && JSON.stringify({ ...delivered, costNanos: String(delivered.costNanos) }),
        ),
      ],
    });
    return this.positions('progress', rows, progress.length);
  }

  settle(settlements: readonly Settlement[]): Promise<(SettleResult | RangeError)[]> {
    return eachIdOnce(
      settlements,
      ({ event }) => event.id,
      (once) => this.settleOnce(once),
    );
  }

  private async settleOnce(settlements: readonly Settlement[]): Promise<(SettleResult | RangeError)[]> {
    const results: (SettleResult | RangeError | undefined)[] = settlements.map(settleMistake);
    const events = settlements.filter((_, index) => !results[index]).map((settlement) => settlement.event);
    const answers: (SettleResult | RangeError)[] = [];
    if (events.length > 0) {
      // Durable before anyone is told, also what an earlier call settled; the tenants' rows are free again before the disk is waited for.
      const rows = await this.connections.callDurably({
        name: 'settle',
        text: 'SELECT * FROM settle($1,$2,$3,$4,$5,$6,$7)',
        values: [
          this.now(),
          events.map((event) => event.id),
          events.map((event) => event.tenantId),
          numbers(events, (event) => cappedNanos(BigInt(event.costNanos))),
          numbers(events, (event) => event.promptTokens + event.completionTokens),
          numbers(events, (event) => monthOf(event.endedAt)),
          events.map((event) => JSON.stringify(event)),
        ],
      });
      for (const [n, code, record] of rows) {
        const index = Number(n) - 1;
        if (code === 'forbidden') countForbidden('settle');
        answers[index] = settleResult(code!, record ?? null, events[index]!);
      }
    }
    return fillIn(results, answers);
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
      values: [this.now(), holds.map((hold) => hold.id), holds.map((hold) => hold.tenantId)],
    });
    return this.positions('void', rows, holds.length);
  }

  async sweep({ limit, confirmAfterMs }: SweepOptions): Promise<UsageEvent[]> {
    // Durable: what is published must not be settled otherwise after a crash.
    const rows = await this.connections.callDurablyInBackground({
      name: 'sweep',
      text: 'SELECT * FROM sweep($1,$2,$3)',
      values: [this.now(), limit, confirmAfterMs],
    });
    await this.holdCounts.refresh();
    return rows.map((row) => JSON.parse(row[0]!) as UsageEvent);
  }

  async applyNews(news: readonly News[]): Promise<void> {
    if (news.length === 0) return;
    await this.applyBudgets(news);
    const releases = news.flatMap(({ tenantId, releases }) => releases.map((id) => ({ tenantId, id })));
    await this.connections.callInBackground({
      name: 'apply_news',
      text: 'SELECT apply_news($1,$2,$3,$4,$5,$6)',
      values: [
        news.map((one) => one.tenantId),
        numbers(news, (one) => one.version),
        numbers(news, (one) => cappedNanos(one.balanceNanos)),
        numbers(news, (one) => one.suspended),
        releases.map((release) => release.tenantId),
        releases.map((release) => release.id),
      ],
    });
  }

  async withdraw({ tenantId, version, nanos }: Withdrawal): Promise<WithdrawResult> {
    const [row] = await this.connections.callDurablyInBackground({
      name: 'withdraw',
      text: 'SELECT * FROM withdraw($1,$2,$3)',
      values: [tenantId, String(version), String(cappedNanos(nanos))],
    });
    const [code, availableNanos] = row as [string, string];
    return code === 'refused'
      ? { kind: code, availableNanos: BigInt(availableNanos) }
      : { kind: code as 'withdrawn' | 'overtaken' };
  }

  async repair(repair: Repair): Promise<RepairResult> {
    await this.connections.callDurablyInBackground(repairCall(repair, this.now()));
    // Columns have types: what is no hold cannot stand in a row.
    return { droppedHolds: 0 };
  }

  private async applyBudgets(news: readonly News[]): Promise<void> {
    const changes = news.flatMap(({ tenantId, budgets = [] }) => budgets.map((budget) => ({ tenantId, ...budget })));
    if (changes.length === 0) return;
    await this.connections.callInBackground({
      name: 'apply_budgets',
      text: 'SELECT apply_budgets($1,$2,$3,$4)',
      values: [
        changes.map(({ tenantId }) => tenantId),
        changes.map(({ keyId }) => keyId ?? ''),
        numbers(changes, ({ version }) => version),
        numbers(changes, ({ nanos }) => {
          if (nanos === 'default') return null;
          return nanos === 'none' ? UNLIMITED_NANOS : cappedNanos(nanos);
        }),
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

  async holds({ tenantId, after, limit }: HoldsQuery): Promise<HoldView[]> {
    const rows = await this.connections.callInBackground({
      name: 'holds',
      text: `SELECT id, state, coalesce(cost_nanos, hold_nanos), now_us($1) / 1000 - CASE state WHEN 'pending' THEN progressed_ms
               ELSE (extract(epoch FROM (record->>'endedAt')::timestamptz) * 1000)::bigint END
             FROM hold WHERE tenant_id = $2 AND id > $3 ORDER BY id LIMIT $4`,
      values: [this.now(), tenantId, after ?? '', limit],
    });
    return rows.map(([id, state, nanos, quietMs]) => ({
      id: id!,
      state: state as HoldView['state'],
      nanos: BigInt(nanos!),
      quietMs: Number(quietMs),
    }));
  }

  /** Rejects when the database cannot be reached or was not migrated. */
  async start(): Promise<void> {
    await startPatiently(() => this.connections.call({ name: 'start', text: 'SELECT FROM hold LIMIT 0', values: [] }));
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

function settleResult(code: string, record: string | null, event: UsageEvent): SettleResult | RangeError {
  if (code === 'over_hold')
    return new RangeError(`the cost of ${event.id}, ${event.costNanos} nanos, is above its hold`);
  if (code === 'forbidden') return { kind: 'forbidden' };
  if (code === 'settled') return { kind: 'settled', repeated: false, event };
  return { kind: 'settled', repeated: true, event: JSON.parse(record!) as UsageEvent };
}
