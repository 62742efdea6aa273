import { randomUUID } from 'node:crypto';
import type { RedisLink } from '@tollgate/redis';
import { logger } from '@tollgate/runtime';
import type { ChangeListener } from '../postgres/change-feed';
import type { CredentialRecord } from '../credential-store';

/** The longest that a change whose notification was lost stays unseen, give or take a round trip: well below the promised second. */
export const CHECK_INTERVAL_MS = 300;
const MAX_RECORDS_PER_CHECK = 1_000;
const FILL_AGAIN_MS = 1_000;

/** One slot for all, so that changes have one order. */
export const KEYS = ['tgc:{credentials}:records', 'tgc:{credentials}:changes', 'tgc:{credentials}:meta'];

/** Writes all credentials anew. */
export type Refill = () => Promise<unknown>;

/**
 * Follows the changes of the store: asks for all behind the last one seen when a notification comes, every CHECK_INTERVAL_MS, and as soon as a lost connection is back.
 *
 * Redis may lose what it had. `filled` in its meta key says that auth has written all credentials, under a token made for that: when it is gone, the store was emptied. Then
 * memory goes on serving, unknown values are refused as unavailable (they may be good), and the process that can writes all anew. A new token: everything
 * is there again, and memory begins anew.
 */
export class ChangeFeed {
  private seen = 0;
  private token = '';
  private stopped = false;
  private woken = false;
  private wakeUp: () => void = () => {};
  private running: Promise<void> = Promise.resolve();
  private refill: Refill | undefined;
  private filling: Promise<void> | undefined;
  private fillAgainAtMs = 0;

  constructor(
    private readonly link: RedisLink,
    private readonly listener: ChangeListener,
  ) {}

  refillWith(refill: Refill): void {
    this.refill = refill;
    this.wake();
  }

  /** Rejects when the store cannot be reached. All changes from here on are told. */
  async start(): Promise<void> {
    const { number, token } = await this.ask(Number.MAX_SAFE_INTEGER);
    [this.seen, this.token] = [number, token];
    if (!token && this.refill) {
      await this.fill();
      await this.check();
    }
    this.link.client.on('ready', () => this.wake());
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.wake();
    await this.running;
  }

  wake(): void {
    this.woken = true;
    this.wakeUp();
  }

  private async run(): Promise<void> {
    let lost = false;
    while (!this.stopped) {
      if (!this.woken) await this.pause(CHECK_INTERVAL_MS);
      this.woken = false;
      if (this.stopped) return;
      try {
        await this.check();
        if (lost) logger('credentials').info('credential store: connected again, up to date');
        lost = false;
      } catch (error) {
        if (!lost)
          logger('credentials').warn(
            { reason: (error as Error).message },
            'credential store: not to be reached; memory goes on serving',
          );
        lost = true;
      }
    }
  }

  private async check(): Promise<void> {
    for (;;) {
      const { number, token, changed, last } = await this.ask(this.seen);
      if (token !== this.token) {
        this.takeToken(token, number);
        continue;
      }
      if (token && number < this.seen) {
        await this.link.one({ function: 'not_filled', keys: KEYS, args: [token] });
        continue;
      }
      this.listener.changed(changed);
      this.seen = last;
      if (changed.length < MAX_RECORDS_PER_CHECK) break;
    }
    if (!this.token && this.refill && Date.now() >= this.fillAgainAtMs) this.filling ??= this.fillOnce(this.refill);
  }

  private takeToken(token: string, number: number): void {
    this.token = token;
    if (token) {
      this.listener.reset();
      this.seen = number;
      logger('credentials').info('credential store: filled anew');
    } else {
      // Its changes count from the beginning again.
      this.seen = 0;
      logger('credentials').warn('credential store: emptied; memory goes on serving until it is filled again');
    }
  }

  private async fill(): Promise<void> {
    if (this.refill) await (this.filling ??= this.fillOnce(this.refill));
  }

  /** Never rejects: a later check tries again. */
  private async fillOnce(refill: Refill): Promise<void> {
    const token = randomUUID();
    try {
      await this.link.one({ function: 'begin_filling', keys: KEYS, args: [token] });
      await refill();
      await this.link.one({ function: 'end_filling', keys: KEYS, args: [token] });
    } catch (error) {
      logger('credentials').warn(
        { reason: (error as Error).message },
        'credential store: could not be filled; trying on',
      );
      this.fillAgainAtMs = Date.now() + FILL_AGAIN_MS;
    }
    this.filling = undefined;
    this.wake();
  }

  private async ask(
    after: number,
  ): Promise<{ number: number; token: string; changed: CredentialRecord[]; last: number }> {
    const reply = await this.link.one({ function: 'changes', keys: KEYS, args: [after, MAX_RECORDS_PER_CHECK] });
    const [number, token, list] = reply as [number, string, (number | string)[]];
    const changed: CredentialRecord[] = [];
    for (let i = 1; i < list.length; i += 2) changed.push(JSON.parse(list[i] as string) as CredentialRecord);
    return { number, token, changed, last: (list.at(-2) as number | undefined) ?? after };
  }

  private pause(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
