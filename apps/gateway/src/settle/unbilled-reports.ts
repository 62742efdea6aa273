import { Inject, Injectable } from '@nestjs/common';
import { MAX_UNBILLED_LINES, newId, RequestError, type UnbilledWork } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';

/** Interval of the reports. A gateway that dies loses at most the work of one interval. */
const REPORT_EVERY_MS = 10_000;
/** For the shutdown: reports are evidence only, and not worth a longer wait. */
const LAST_DEADLINE_MS = 1_500;
const HOUR_MS = 3_600_000;
/** No request spans more hours, and older hours have already been compared. */
const MAX_HOURS = 24;

/** Tokens that a backend may have processed and that are not charged. */
export type BackendWork = Omit<UnbilledWork, 'hour'>;

/**
 * Reports uncharged work to metering, summed by backend and hour, so that the counters of the engines can be compared
 * with the books. An unanswered report is sent again under its id, and counts once. No request waits for a report.
 */
@Injectable()
export class UnbilledReports {
  private gathered = new Map<string, UnbilledWork>();
  private report: { id: string; work: UnbilledWork[] } | null = null;
  private sending: Promise<void> | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(@Inject(ServiceClient) private readonly services: Requests) {}

  /**
   * Work of a request that began at `sinceMs` and ends now. The hour in which it was done is unknown, so each hour of
   * the request counts all of it.
   */
  note({ sinceMs, work }: { sinceMs: number; work: readonly BackendWork[] }, nowMs = Date.now()): void {
    for (const { backend, promptTokens, completionTokens } of work) {
      if (promptTokens === 0 && completionTokens === 0) continue;
      const first = Math.max(hourOf(Math.min(sinceMs, nowMs)), hourOf(nowMs) - (MAX_HOURS - 1) * HOUR_MS);
      for (let hourMs = first; hourMs <= nowMs; hourMs += HOUR_MS)
        this.add({ backend, hour: new Date(hourMs).toISOString(), promptTokens, completionTokens });
    }
    if (this.gathered.size > 0) this.arm();
  }

  /** For the shutdown: sends the gathered work once more. Never rejects. */
  async flush(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    await this.sending;
    for (let last = 0; last < 2 && (this.report !== null || this.gathered.size > 0); last++)
      if (!(await this.send(LAST_DEADLINE_MS))) return;
  }

  private add({ backend, hour, promptTokens, completionTokens }: UnbilledWork): void {
    const key = `${hour} ${backend}`;
    const sum = this.gathered.get(key);
    if (sum) {
      sum.promptTokens += promptTokens;
      sum.completionTokens += completionTokens;
    } else if (this.gathered.size < MAX_UNBILLED_LINES)
      this.gathered.set(key, { backend, hour, promptTokens, completionTokens });
  }

  private arm(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.sending = this.send().then(() => {
        this.sending = null;
        if (this.report !== null || this.gathered.size > 0) this.arm();
      });
    }, REPORT_EVERY_MS).unref();
  }

  /** False: the report was not received, and is kept. Never rejects. */
  private async send(deadlineMs?: number): Promise<boolean> {
    if (this.report === null) {
      this.report = { id: newId('msg'), work: [...this.gathered.values()] };
      this.gathered = new Map();
    }
    try {
      await this.services.request('metering.backends.unbilled', this.report, deadlineMs ? { deadlineMs } : {});
    } catch (error) {
      if (!(error instanceof RequestError)) {
        logger('gateway').debug({ err: error }, 'a report of unbilled work was not sent; it is sent again');
        return false;
      }
      logger('gateway').error({ err: error }, 'a report of unbilled work was refused');
    }
    this.report = null;
    return true;
  }
}

const hourOf = (ms: number): number => ms - (ms % HOUR_MS);
