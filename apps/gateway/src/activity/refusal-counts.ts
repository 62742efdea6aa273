import {
  MAX_REFUSAL_COUNTS,
  MAX_REFUSED_IN_REPORT,
  newId,
  RequestError,
  type RefusalCount,
  type RefusedRequest,
} from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { Counter, logger, metrics } from '@tollgate/runtime';
import type { Reported } from './paced-reports';
import { RefusalSamples } from './refusal-samples';

/** Keys × codes of an hour. Those beyond are not counted. */
const MAX_COUNTS = 10_000;
const HOUR_MS = 3_600_000;

const uncounted = new Counter({
  name: 'tollgate_uncounted_refusals_total',
  help: `Refused requests that are not counted by key and code, because ${MAX_COUNTS} pairs are counted already`,
  registers: [metrics],
});

/** A key and its tenant. */
export interface Owner {
  readonly tenantId: string;
  readonly keyId: string;
}

interface Count extends RefusalCount {
  /** How many metering knows. */
  reported: number;
}

/**
 * Counts the requests that this process refused, by key, code and hour, and reports the counts that have grown. A
 * report carries the whole count, so one that is repeated, late or lost does no harm. A process that dies loses what it
 * counted since its last report: only people read these numbers, and no request waits for them. The samples are
 * reported with the counts.
 */
export class RefusalCounts {
  private readonly source = newId('msg');
  private counts = new Map<string, Count>();
  private hourMs = 0;
  private hour = '';

  constructor(
    private readonly services: Requests,
    private readonly samples = new RefusalSamples(),
    private readonly maxCounts = MAX_COUNTS,
  ) {}

  count({ tenantId, keyId }: Owner, code: string, nowMs: number): void {
    if (nowMs < this.hourMs || nowMs >= this.hourMs + HOUR_MS) this.beginHour(nowMs);
    const name = `${this.hour} ${keyId} ${code}`;
    const known = this.counts.get(name);
    if (known) known.requests += 1;
    else if (this.counts.size < this.maxCounts)
      this.counts.set(name, { tenantId, keyId, hour: this.hour, code, requests: 1, reported: 0 });
    else uncounted.inc();
  }

  /** Reports what has grown, in parts. Never rejects: what was not received is sent the next time. */
  async report(deadlineMs?: number): Promise<Reported> {
    const grown = [...this.counts.values()].filter(({ requests, reported }) => requests > reported);
    const refused = this.samples.take();
    const rows = grown.length + refused.length;
    const parts = Math.max(grown.length / MAX_REFUSAL_COUNTS, refused.length / MAX_REFUSED_IN_REPORT);
    for (let part = 0; part < parts; part++) {
      const counts = partOf(grown, part, MAX_REFUSAL_COUNTS);
      if (!(await this.send(counts, partOf(refused, part, MAX_REFUSED_IN_REPORT), deadlineMs)))
        return { rows, isComplete: false };
    }
    return { rows, isComplete: true };
  }

  private beginHour(nowMs: number): void {
    this.hourMs = nowMs - (nowMs % HOUR_MS);
    this.hour = new Date(this.hourMs).toISOString();
    // Earlier hours are complete: they are kept until they are reported.
    for (const [name, { hour, requests, reported }] of this.counts)
      if (hour !== this.hour && requests === reported) this.counts.delete(name);
  }

  private async send(
    part: readonly Count[],
    refused: readonly RefusedRequest[],
    deadlineMs?: number,
  ): Promise<boolean> {
    const counts = part.map(({ reported: _reported, ...count }): RefusalCount => count);
    try {
      const deadline = deadlineMs === undefined ? {} : { deadlineMs };
      const report = { source: this.source, counts, ...(refused.length > 0 && { refused: [...refused] }) };
      await this.services.request('metering.refusals.report', report, deadline);
    } catch (error) {
      if (!(error instanceof RequestError)) {
        logger('gateway').debug({ err: error }, 'counts of refused requests were not sent; they are sent again');
        return false;
      }
      logger('gateway').error({ err: error }, 'metering rejected a report of refusal counts');
    }
    this.samples.sent(refused);
    for (const [index, count] of part.entries()) count.reported = counts[index]!.requests;
    return true;
  }
}

function partOf<T>(all: readonly T[], part: number, length: number): T[] {
  return all.slice(part * length, (part + 1) * length);
}
