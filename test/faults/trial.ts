import { eventually } from '@tollgate/testing';
import type { ComposedDeployment } from '../e2e/composed';
import { reconciled, type Books, type TestTenant } from '../e2e/fixtures';
import type { Outcome } from './client-request';
import { booksOf, faultsOf, missing } from './ledger-check';
import type { Load } from './load';

/** Once a fault is over all must be well within this time, and once nothing runs any more again. 15 s is the aim, and what all but two faults take; the rest is for machines on which other tests run too. */
const DUST_TIMEOUT_MS = 60_000;
/** After every part but Redis was killed, one after the other, beside other tests: not yet what it should be. */
export const DUST_OF_ALL_TIMEOUT_MS = 150_000;
const ANSWERS_BEFORE = 20;
const ANSWERS_AFTER = 40;

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

/** Does faults under load, one after the other, and checks the books after each. */
export class Trials {
  readonly done: Trial[] = [];

  constructor(
    private readonly tollgate: ComposedDeployment,
    private readonly load: Load,
    private readonly tenants: readonly TestTenant[],
    private readonly creditCents: number,
  ) {}

  /** Rejects unless, once the dust has settled, every answer that its client saw whole is in the ledger exactly once. */
  async run(fault: string, doIt: () => Promise<void>, dustTimeoutMs = DUST_TIMEOUT_MS): Promise<Trial> {
    const { load } = this;
    await this.tollgate.allReady();
    load.start();
    await load.answers(ANSWERS_BEFORE);
    const from = load.outcomes.length;
    const begunMs = Date.now();
    await doIt();
    const endedMs = Date.now();
    try {
      const bookedMs = await this.untilBooked(endedMs, dustTimeoutMs);
      await load.answers(ANSWERS_AFTER);
      await load.pause();
      const outcomes = load.outcomes.slice(from);
      const failed = outcomes.filter((outcome) => outcome.failure !== null && outcome.endedMs >= begunMs);
      const pausedMs = Date.now();
      const books = await this.untilWell(dustTimeoutMs);
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
      return trial;
    } finally {
      await load.pause();
    }
  }

  /** When every answer that had been seen at `endedMs` was in the ledger. */
  private async untilBooked(endedMs: number, timeoutMs: number): Promise<number> {
    const seen = this.load.outcomes.filter((outcome) => outcome.endedMs <= endedMs);
    await eventually(async () => none('missing in the ledger', missing(seen, await this.books())), {
      timeoutMs,
      everyMs: 100,
    });
    return Date.now();
  }

  private async untilWell(timeoutMs: number): Promise<Map<string, Books>> {
    await reconciled(this.tollgate.ready, timeoutMs);
    return eventually(
      async () => {
        const books = await this.books();
        none('wrong in the ledger', faultsOf(this.load.outcomes, books, this.creditCents));
        return books;
      },
      { timeoutMs, everyMs: 200 },
    );
  }

  private books(): Promise<Map<string, Books>> {
    return booksOf(
      this.tollgate.database,
      this.tenants.map(({ id }) => id),
    );
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
