import { backoffMs, logger, StartError, WakeableDelay, withTimeout } from '@tollgate/runtime';
import { BrokersAwayError } from './admin/apply-topics';

/** How long the start waits for silent brokers. */
const START_PATIENCE_MS = 5_000;
const RETRY_BASE_MS = 500;
const MAX_RETRY_MS = 5_000;

/**
 * The start of a process that also serves without Kafka. It does not wait for brokers that are down, and connects in
 * the background as soon as they answer. If the brokers answer and cannot be used (a wrong password, missing topics),
 * the start fails like any other. After the start such an error is only logged, and the connection is retried.
 */
export class PatientStart {
  /** Why it is not connected yet. */
  problem: string | undefined;
  private readonly log = logger('kafka');
  private readonly woken = new WakeableDelay();
  private stopped = false;

  /** @param connect tries once, in bounded time, and may be called again after a failure */
  constructor(
    private readonly connect: () => Promise<void>,
    private readonly onConnected: () => void,
  ) {}

  /** Resolves when it is connected, or continues in the background. Rejects with StartError. */
  async start(): Promise<void> {
    const first = this.connect();
    const late = () => new BrokersAwayError(`Kafka has not answered within ${START_PATIENCE_MS} ms`);
    try {
      await withTimeout(START_PATIENCE_MS, first, late);
    } catch (error) {
      if (!(error instanceof BrokersAwayError)) throw error;
      this.failed(error);
      void this.goOn(first);
      return;
    }
    this.onConnected();
  }

  /** Starts no further attempt. */
  stop(): void {
    this.stopped = true;
    this.woken.wake();
  }

  private async goOn(first: Promise<void>): Promise<void> {
    for (let failures = 0; !this.stopped; failures++) {
      try {
        await (failures === 0 ? first : this.connect());
        if (this.stopped) return;
        this.problem = undefined;
        this.log.info('connected to Kafka');
        return this.onConnected();
      } catch (error) {
        this.failed(error as Error);
        await this.woken.wait(backoffMs(failures, RETRY_BASE_MS, MAX_RETRY_MS));
      }
    }
  }

  /** Logged once for as long as the reason is the same. */
  private failed(error: Error): void {
    const { message } = error;
    if (message === this.problem || this.stopped) return;
    this.problem = message;
    const reason = error instanceof StartError ? { reason: message } : { err: error };
    this.log.warn(reason, 'serving without Kafka; retrying the connection');
  }
}
