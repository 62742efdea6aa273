import { eventually } from '@tollgate/testing';
import type { ComposedDeployment } from '../e2e/composed';
import { operator } from '../e2e/deployment';
import { answered, ledgerOf, reconciled, type Books, type TestTenant } from '../e2e/fixtures';
import type { Outcome } from './client-request';
import { booksOf, faultsOf, LACKS_NOTHING, leftNanos, missing, type MayLack } from './ledger-check';
import type { Load } from './load';

/**
 * Once a fault is over all must be well within this time, and once nothing runs any more again. A fault of a server is
 * over when it listens again.
 */
const DUST_TIMEOUT_MS = 15_000;
const ANSWERS_BEFORE = 20;
const ANSWERS_AFTER = 40;
/** Of the tenant that runs out of credit, at the begin of each fault: for some dozen requests. */
const SCARCE_CENTS = 2;
const NANOS_PER_CENT = 10_000_000;
/** What a client saw complete is gathered by billing within this time while all services run. */
const GATHER_SLACK_MS = 2_000;

/** One fault, and what it cost. */
export interface Trial {
  fault: string;
  /** All that ended from its begin until nothing ran any more. */
  outcomes: Outcome[];
  failed: Outcome[];
  /** From the fault's end until the last failure was behind, and every answer seen until then was in the ledger. */
  recoveryMs: number;
  /** From the end of the load until no hold was left and reconcile found no difference. */
  settledMs: number;
  /** By tenant, at the end. */
  books: Map<string, Books>;
}

export interface TrialOptions {
  /**
   * Redis loses what it knew; what ran at that moment, and what billing had not gathered, is not counted against the
   * credit any more (docs/money.md) and may be charged beyond it.
   */
  empties?: boolean;
  /** Of several faults at once, whose ends follow from each other: how long each of the two phases may take. */
  dustTimeoutMs?: number;
  mayLack?: MayLack;
  /** What else is to be done when the fault is over, before the load ends. */
  afterwards?: () => Promise<void>;
}

/** Does faults under load, one after the other, and checks the books after each. */
export class Trials {
  readonly done: Trial[] = [];
  private readonly creditCents: Map<string, number>;
  private topUps = 0;

  /**
   * `scarce`: the tenant whose credit is for some dozen requests, so that it is spent while a fault lasts. The others
   * never run out.
   */
  constructor(
    private readonly tollgate: ComposedDeployment,
    private readonly load: Load,
    tenants: readonly { id: string; creditCents: number }[],
    readonly scarce: TestTenant,
  ) {
    this.creditCents = new Map(tenants.map(({ id, creditCents }) => [id, creditCents]));
  }

  /**
   * Rejects unless, once the dust has settled, every answer that its client saw whole is in the ledger exactly once,
   * and nobody was charged more than its credit.
   */
  async run(fault: string, doIt: () => Promise<void>, options: TrialOptions = {}): Promise<Trial> {
    const { load } = this;
    const { empties = false, dustTimeoutMs = DUST_TIMEOUT_MS } = options;
    await this.tollgate.allReady();
    await this.topUpScarce();
    load.start();
    await load.answers(ANSWERS_BEFORE);
    const from = load.outcomes.length;
    const begunMs = Date.now();
    try {
      await doIt();
      const endedMs = Date.now();
      const bookedMs = await this.untilBooked(endedMs, options);
      await options.afterwards?.();
      await load.answers(ANSWERS_AFTER);
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
      if (trial.recoveryMs > dustTimeoutMs) throw new Error(`${fault}: felt for ${trial.recoveryMs} ms`);
      if (trial.settledMs > dustTimeoutMs) throw new Error(`${fault}: not settled for ${trial.settledMs} ms`);
      return trial;
    } finally {
      await load.pause();
    }
  }

  /** Those that failed, but for the refusals of who has spent its credit. */
  failedOf(outcomes: readonly Outcome[]): Outcome[] {
    return outcomes.filter((outcome) => outcome.failure !== null && !this.isSpent(outcome));
  }

  /** Whether it was refused because its tenant has no credit left. */
  isSpent({ tenantId, failure }: Outcome): boolean {
    return tenantId === this.scarce.id && /^(402 credit_exhausted|429 credit_held)$/.test(failure ?? '');
  }

  /** So that it has credit for some dozen requests, whatever it owes. */
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

  /** What the tenant was given (or, negative, paid back) besides. */
  credited(tenantId: string, cents: number): void {
    this.creditCents.set(tenantId, this.creditCents.get(tenantId)! + cents);
  }

  /** When every answer that had been seen at `endedMs` was in the ledger. */
  private async untilBooked(endedMs: number, { mayLack, dustTimeoutMs }: TrialOptions): Promise<number> {
    const seen = this.load.outcomes.filter((outcome) => outcome.endedMs <= endedMs);
    await eventually(async () => none('missing in the ledger', missing(seen, await this.books(), mayLack)), {
      timeoutMs: dustTimeoutMs ?? DUST_TIMEOUT_MS,
      everyMs: 100,
    });
    return Date.now();
  }

  /** `emptied`: when Redis was, if it was. */
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

  /** What requests of this tenant that ran in that time were charged. */
  private chargedWithin(time: { fromMs: number; untilMs: number }, tenantId: string, { charges }: Books): number {
    return this.load.outcomes
      .filter((one) => one.tenantId === tenantId && one.startedMs <= time.untilMs && one.endedMs >= time.fromMs)
      .reduce((sum, { requestId }) => sum + (charges.get(requestId ?? '') ?? 0), 0);
  }

  private books(): Promise<Map<string, Books>> {
    return booksOf(this.tollgate.database, this.creditCents.keys());
  }

  /** A line each: what it cost, and how long it was felt. */
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
