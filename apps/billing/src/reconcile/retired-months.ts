import { Inject, Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import type { MonthTotals, RetiredMonth } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { askAgain } from './ask';
import { Charges } from './charges';
import type { Findings } from './findings';

const FIRST_MS = 5 * 60_000;
const EVERY_MS = 60 * 60_000;
const CHECK = 'the charges of a dropped month are those of its events';

/**
 * The months whose events metering drops. Billing confirms each once its charges have the totals and the digest of the
 * events, and reconcile compares both for ever.
 */
@Injectable()
export class RetiredMonths implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.confirm(),
    failed: (error) => this.failed(error),
    firstMs: FIRST_MS,
    everyMs: EVERY_MS,
  });

  constructor(
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly charges: Charges,
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop(new Error('billing is stopping'));
  }

  /** Confirms the months whose charges are complete. Returns them. A repeat changes nothing. */
  async confirm(): Promise<string[]> {
    const confirmed: string[] = [];
    for (const month of await this.list(this.task.ending)) {
      if (month.confirmed) continue;
      const { totals } = await this.totals(month, this.task.ending);
      const answer = await askAgain(this.services, 'metering.months.confirm', totals, this.task.ending);
      if (answer.confirmed) confirmed.push(month.month);
      else
        logger('billing').warn(
          { month: month.month, events: month.events, charges: totals.events },
          'a month of usage events is not dropped, because its charges differ: run reconcile',
        );
    }
    return confirmed;
  }

  /**
   * Compares the charges of the confirmed months with the totals that metering kept of their events. Returns the place
   * after them, from which events and charges are compared one by one.
   */
  async prove(findings: Findings, stopped: AbortSignal): Promise<string> {
    const months = await this.list(stopped);
    const firstOpen = months.findIndex(({ confirmed }) => !confirmed);
    const proven = firstOpen < 0 ? months : months.slice(0, firstOpen);
    for (const month of proven) {
      const { totals, detailsDigest } = await this.totals(month, stopped);
      findings.events += month.events;
      findings.eventsNanos += BigInt(month.costNanos);
      const kept = month.detailsDigest ?? null;
      const [expected, actual] = [text(month, kept), text(totals, kept === null ? null : detailsDigest)];
      if (expected !== actual) findings.add([{ check: CHECK, tenantId: '', expected, actual, ids: [] }]);
    }
    return before(proven.at(-1)?.untilId ?? '');
  }

  private async list(stopped: AbortSignal): Promise<RetiredMonth[]> {
    return (await askAgain(this.services, 'metering.months.list', {}, stopped)).data;
  }

  private async totals(
    { month, fromId, untilId }: RetiredMonth,
    stopped: AbortSignal,
  ): Promise<{ totals: MonthTotals; detailsDigest: string }> {
    const sum = { events: 0, costNanos: 0n, digest: 0n, detailsDigest: 0n };
    for (let after: string | null = before(fromId); after !== null;) {
      stopped.throwIfAborted();
      const part = await this.charges.part({ after, until: before(untilId) });
      sum.events += part.events;
      sum.costNanos += BigInt(part.costNanos);
      sum.digest += BigInt(part.digest);
      sum.detailsDigest += BigInt(part.detailsDigest);
      after = part.end;
    }
    const { events, costNanos, digest } = sum;
    return {
      totals: { month, events, costNanos: String(costNanos), digest: String(digest) },
      detailsDigest: String(sum.detailsDigest),
    };
  }

  private failed(error: unknown): void {
    logger('billing').warn({ err: error }, 'months of usage events could not be confirmed; retrying');
  }
}

/** The place before the least id of a month: no id equals its text without the last character. */
const before = (boundId: string): string => boundId.slice(0, -1);

const text = ({ month, events, costNanos, digest }: MonthTotals, detailsDigest: string | null): string =>
  `${month}: ${events} of ${costNanos} nanos, digest ${digest}${detailsDigest === null ? '' : `, ${detailsDigest}`}`;
