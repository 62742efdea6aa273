import { type FailedAttempt, MAX_FAILED_ATTEMPTS } from '@tollgate/contracts';
import { failedAttempt, type UpstreamFailure } from './failure';

/** What is remembered of the attempts of one request, for its usage event and for its explanation. */
export class AttemptRecord {
  /** Names of the backends that may have begun the request, in the order asked. If one answers, it is the last. */
  readonly begun: string[] = [];
  /** The attempts that failed, in order, without stale ones: the first ones and the last one. Null: none did. */
  failed: FailedAttempt[] | null = null;
  /** The running attempt's backend is the last one in `begun`. */
  private isNoted = false;

  /** The request was written to this backend. */
  written(backend: string): void {
    this.begun.push(backend);
    this.isNoted = true;
  }

  /** The running attempt has failed. */
  ended(mayHaveBegun: boolean): void {
    if (this.isNoted && !mayHaveBegun) this.begun.pop();
    this.isNoted = false;
  }

  addFailed(failure: UpstreamFailure, backend: string): void {
    const failed = (this.failed ??= []);
    failed[Math.min(failed.length, MAX_FAILED_ATTEMPTS - 1)] = failedAttempt(failure, backend);
  }
}
