import { eventually } from '@tollgate/testing';
import type { ComposedDeployment } from '../e2e/composed';
import { operator } from '../e2e/deployment';
import { answered, ledgerOf, type Books, type TestTenant } from '../e2e/fixtures';
import { reconciled } from '../e2e/reconcile';
import type { Outcome } from './client-request';
import { booksOf, faultsOf, LACKS_NOTHING, leftNanos, missing, type MayLack } from './ledger-check';
import type { Load } from './load';
import type { Control } from './nemesis/control';
import { recoverySlackMs } from './nemesis/verdict';

/**
 * The limit of the recovery after a fault, and again of the settlement after the load, on an idle machine. A fault of a
 * server ends when the server listens again.
 */
export const DUST_LIMIT_MS = 15_000;
/** A recovery that takes longer has failed on any machine. */
const DUST_TIMEOUT_MS = 100_000;
/** The time of the load before the fault and after the recovery, in the load's own pace. */
const BEFORE_MS = 500;
const AFTER_MS = 1_000;
/** The credit of the scarce tenant at the beginning of each fault, for some dozen requests. */
const SCARCE_CENTS = 2;
const NANOS_PER_CENT = 10_000_000;
/** Billing gathers the charge of a complete answer within this time while all services run. */
const GATHER_SLACK_MS = 2_000;

/** One fault and its effects. */
export interface Trial {
  fault: string;
  /** The requests that ended between the beginning of the fault and the end of the load. */
  outcomes: Outcome[];
  failed: Outcome[];
  /** From the end of the fault until the last failure, and until every answer seen so far was in the ledger. */
  recoveryMs: number;
  /** From the end of the load until no hold was left and reconcile found no difference. */
  settledMs: number;
  /** The books at the end, by tenant. */
  books: Map<string, Books>;
}

export interface TrialOptions {
  /**
   * Whether Redis loses its data. Then requests that were running, and usage that billing had not gathered, may be
   * charged beyond the credit (docs/money.md).
   */
  empties?: boolean;
  /** The limit of each of the two phases on an idle machine, and the time after which it has failed on any machine. */
  dustLimitMs?: number;
  dustTimeoutMs?: number;
  mayLack?: MayLack;
  /** Called after the fault, before the load ends. */
  afterwards?: () => Promise<void>;
}

/** Causes faults under load, one after the other, and checks the books after each. */
export class Trials {
  readonly done: Trial[] = [];
  private readonly creditCents: Map<string, number>;
  private topUps = 0;

  /** `scarce` is a tenant that uses up its credit during each fault. The others never do. */
  constructor(
    private readonly tollgate: ComposedDeployment,
    private readonly load: Load,
    tenants: readonly { id: string; creditCents: number }[],
    readonly scarce: TestTenant,
    private readonly control: () => Control,
  ) {
    this.creditCents = new Map(tenants.map(({ id, creditCents }) => [id, creditCents]));
  }

  /**
   * Rejects unless, after the recovery, every answer that a client saw complete is in the ledger exactly once, and no
   * tenant was charged more than its credit.
   */
  async run(fault: string, doIt: () => Promise<void>, options: TrialOptions = {}): Promise<Trial> {
    const { load } = this;
    const { empties = false, dustLimitMs = DUST_LIMIT_MS } = options;
    await this.tollgate.allReady();
    await this.topUpScarce();
    load.start();
    await load.answersOf(BEFORE_MS);
    const from = load.outcomes.length;
    const begunMs = Date.now();
    try {
      await doIt();
      const endedMs = Date.now();
      const bookedMs = await this.untilBooked(endedMs, options);
      await options.afterwards?.();
      await load.answersOf(AFTER_MS);
      await load.pause();
      const outcomes = load.outcomes.slice(from);
      const failed = this.failedOf(outcomes).filter((outcome) => outcome.endedMs >= begunMs);
      const pausedMs = Date.now();
      const emptied = empties ? { fromMs: begunMs - GATHER_SLACK_MS, untilMs: endedMs } : undefined;
      const books = await this.untilWell(emptied, options);
      const lastFailureMs = Math.max(0, ...failed.map((outcome) => outcome.endedMs));
      const trial = {
        fault,
        outcomes,
        failed,
        recoveryMs: Math.max(0, lastFailureMs - endedMs, bookedMs - endedMs),
        settledMs: Date.now() - pausedMs,
        books,
      };
      this.done.push(trial);
      const limitMs = dustLimitMs + recoverySlackMs(this.control(), begunMs, Date.now());
      const limit = `and the limit is ${Math.round(limitMs)} ms`;
      if (trial.recoveryMs > limitMs)
        throw new Error(`${fault}: recovered only after ${trial.recoveryMs} ms, ${limit}`);
      if (trial.settledMs > limitMs) throw new Error(`${fault}: settled only after ${trial.settledMs} ms, ${limit}`);
      return trial;
    } finally {
      await load.pause();
    }
  }

  /** The failed requests, without the refusals of a tenant without credit. */
  failedOf(outcomes: readonly Outcome[]): Outcome[] {
    return outcomes.filter((outcome) => outcome.failure !== null && !this.isSpent(outcome));
  }

  /** Whether it was refused because its tenant has no credit left. */
  isSpent({ tenantId, failure }: Outcome): boolean {
    return tenantId === this.scarce.id && /^(402 credit_exhausted|429 credit_held)$/.test(failure ?? '');
  }

  /** Tops the scarce tenant up, so that it has credit for some dozen requests. */
  private async topUpScarce(): Promise<void> {
    const { id } = this.scarce;
    const owedCents = Math.ceil(-leftNanos(await ledgerOf(this.tollgate.database, id)) / NANOS_PER_CENT);
    const amountCents = SCARCE_CENTS + owedCents;
    if (amountCents <= 0) return;
    const path = `/_operator/v1/tenants/${id}/credit`;
    const body = { amountCents, ref: `top-up-${++this.topUps}` };
    await answered(() => operator(this.tollgate.ready).post(path, body), 201);
    this.credited(id, amountCents);
  }

  /** Records further credit of the tenant, or a refund if negative. */
  credited(tenantId: string, cents: number): void {
    this.creditCents.set(tenantId, this.creditCents.get(tenantId)! + cents);
  }

  /** Waits until every answer seen until `endedMs` is in the ledger. Returns the time. */
  private async untilBooked(endedMs: number, { mayLack, dustTimeoutMs }: TrialOptions): Promise<number> {
    const seen = this.load.outcomes.filter((outcome) => outcome.endedMs <= endedMs);
    await eventually(async () => none('missing in the ledger', missing(seen, await this.books(), mayLack)), {
      timeoutMs: dustTimeoutMs ?? DUST_TIMEOUT_MS,
      everyMs: 100,
    });
    return Date.now();
  }

  /** `emptied` is the time at which Redis was emptied, if it was. */
  private async untilWell(
    emptied: { fromMs: number; untilMs: number } | undefined,
    { dustTimeoutMs = DUST_TIMEOUT_MS, mayLack = LACKS_NOTHING }: TrialOptions,
  ): Promise<Map<string, Books>> {
    await reconciled(this.tollgate.ready, dustTimeoutMs);
    return eventually(
      async () => {
        const books = await this.books();
        const creditOf = (id: string) => ({
          cents: this.creditCents.get(id)!,
          mayOverdrawNanos: emptied ? this.chargedWithin(emptied, id, books.get(id)!) : 0,
        });
        none('wrong in the ledger', faultsOf(this.load.outcomes, books, creditOf, mayLack));
        return books;
      },
      { timeoutMs: dustTimeoutMs, everyMs: 200 },
    );
  }

  /** The charges of this tenant's requests in that time. */
  private chargedWithin(time: { fromMs: number; untilMs: number }, tenantId: string, { charges }: Books): number {
    return this.load.outcomes
      .filter((one) => one.tenantId === tenantId && one.startedMs <= time.untilMs && one.endedMs >= time.fromMs)
      .reduce((sum, { requestId }) => sum + (charges.get(requestId ?? '') ?? 0), 0);
  }

  private books(): Promise<Map<string, Books>> {
    return booksOf(this.tollgate.database, this.creditCents.keys());
  }

  /** A line for each fault, with its failures and its recovery time. */
  report(): string {
    const rows = this.done.map(({ fault, outcomes, failed, recoveryMs, settledMs }) => [
      fault,
      String(outcomes.length),
      String(failed.length),
      failureKinds(failed),
      seconds(recoveryMs),
      seconds(settledMs),
    ]);
    const table = [['fault', 'requests', 'failed', 'with', 'recovered', 'settled'], ...rows];
    const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
    return table.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')).join('\n');
  }
}

/** `3 × broken, 2 × 503 overloaded` */
export function failureKinds(failed: readonly Outcome[]): string {
  const counts = new Map<string, number>();
  for (const { failure } of failed) counts.set(failure!, (counts.get(failure!) ?? 0) + 1);
  return [...counts].map(([failure, count]) => `${count} × ${failure}`).join(', ');
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

function none(what: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error(`${faults.length} ${what}:\n${faults.slice(0, 10).join('\n')}`);
}
