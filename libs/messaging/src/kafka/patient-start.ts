import { backoffMs, logger, StartError, WakeableDelay, withTimeout } from '@tollgate/runtime';
import { BrokersAwayError } from './apply-topics';

/** So long the start waits for brokers that say nothing. */
const START_PATIENCE_MS = 5_000;
const RETRY_BASE_MS = 500;
const MAX_RETRY_MS = 5_000;

/**
 * The start of a process that serves without Kafka too: it does not wait for brokers that are away, and connects in the
 * background as soon as they are there. Brokers that answer, and that it cannot work with (a wrong password, missing
 * topics), end the start as they end anybody's. Once it has started they end nothing: it is logged, and tried on.
 */
export class PatientStart {
  /** Why it is not connected yet. */
  problem: string | undefined;
  private readonly log = logger('kafka');
  private readonly woken = new WakeableDelay();
  private stopped = false;

  /** @param connect tries once, in bounded time, and may be called again after it has failed */
  constructor(
    private readonly connect: () => Promise<void>,
    private readonly onConnected: () => void,
  ) {}

  /** Resolves when it is connected, or goes on in the background. Rejects with StartError. */
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

  /** Begins nothing more. */
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

  /** Said once as long as it is the same. */
  private failed(error: Error): void {
    const { message } = error;
    if (message === this.problem || this.stopped) return;
    this.problem = message;
    const reason = error instanceof StartError ? { reason: message } : { err: error };
    this.log.warn(reason, 'serving without Kafka, and trying on to connect');
  }
}
