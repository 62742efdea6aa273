import { delay, logger } from '@tollgate/runtime';
import type { Client } from 'pg';

const MAX_ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;
/**
 * A server that ends again within this time uses up the same attempts, so a server that cannot run is not restarted
 * forever.
 */
const STABLE_MS = 60_000;

/**
 * Keeps an embedded server running. The connection that owns it for its whole life notices its end: running →
 * (connection ends) → starting again, with pauses that double → running, or given up. Everything committed is kept.
 * Clients reconnect, as after any restart of PostgreSQL.
 */
export class Keeper {
  private stopping = false;
  private attempts = 0;
  private openedMs = performance.now();
  private restarting: Promise<void> | undefined;

  /** `open` starts the server if it does not run, and takes it over. */
  constructor(
    private owner: Client,
    private readonly open: () => Promise<Client>,
    private readonly onGivenUp: (error: Error) => void,
  ) {
    this.watch();
  }

  /** From now on the end of the server is intended. Returns the connection that owns it, which the caller ends. */
  async stop(): Promise<Client> {
    this.stopping = true;
    await this.restarting;
    return this.owner;
  }

  private watch(): void {
    this.owner.once('end', () => {
      if (!this.stopping) this.restarting = this.restart();
    });
  }

  private async restart(): Promise<void> {
    logger('postgres').error('the embedded PostgreSQL ended by itself: restarting it');
    if (performance.now() - this.openedMs > STABLE_MS) this.attempts = 0;
    let reason: Error | undefined;
    for (; this.attempts < MAX_ATTEMPTS && !this.stopping; this.attempts++) {
      await delay(Math.min(FIRST_PAUSE_MS * 2 ** this.attempts, MAX_PAUSE_MS));
      try {
        this.owner = await this.open();
        this.openedMs = performance.now();
        this.attempts++;
        this.watch();
        logger('postgres').warn('the embedded PostgreSQL is running again');
        return;
      } catch (error) {
        // Its former processes may not all have ended yet.
        reason = error as Error;
        logger('postgres').warn({ reason: reason.message }, 'the embedded PostgreSQL does not start yet');
      }
    }
    if (!this.stopping) this.onGivenUp(reason ?? new Error('PostgreSQL ended repeatedly'));
  }
}
