import type { Settlement } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import { delayUntilAborted, logger } from '@tollgate/runtime';

const RETRY_MS = 500;
/** More requests than this never run at once, and none begin until the store is back. */
const MAX_WAITING = 10_000;

/**
 * Settles streams that ended while the store did not answer: their output was delivered, so it is owed. Each is settled
 * as soon as the store is back, unless the sweeper was first (a hold expires 10 s after its last heartbeat). The list
 * is in memory only. If the gateway dies, the hold is charged at what it recorded.
 */
export class LateSettlements {
  private readonly waiting = new Set<Promise<void>>();
  private readonly ending = new AbortController();

  /** `settleNow` rejects with UnavailableError while the store does not answer. */
  constructor(
    private readonly settleNow: (settlement: Settlement, logged: object) => Promise<void>,
    private readonly maxWaiting = MAX_WAITING,
  ) {}

  /** @param logged names the request in log lines */
  add(settlement: Settlement, logged: object): void {
    if (this.waiting.size >= this.maxWaiting) {
      logger('gateway').warn(
        logged,
        'too many streams wait to be settled: the hold of this one is charged at its deadline',
      );
      return;
    }
    const settling = this.settle(settlement, logged).finally(() => this.waiting.delete(settling));
    this.waiting.add(settling);
  }

  /** For the shutdown: returns when each was tried once more. */
  async flush(): Promise<void> {
    this.ending.abort();
    await Promise.all(this.waiting);
  }

  /** Never rejects. */
  private async settle(settlement: Settlement, logged: object): Promise<void> {
    for (let last = false; !last; last = this.ending.signal.aborted) {
      await delayUntilAborted(RETRY_MS, this.ending.signal);
      try {
        await this.settleNow(settlement, logged);
        return;
      } catch (error) {
        if (error instanceof UnavailableError) continue;
        logger('gateway').error(
          { ...logged, err: error },
          'the late settlement of a stream failed: its hold is charged at its deadline',
        );
        return;
      }
    }
    logger('gateway').warn(
      logged,
      'the process stopped before a stream was settled; its hold is charged at its deadline',
    );
  }
}
