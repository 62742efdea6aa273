import type { RedisLink } from '@tollgate/redis';
import { logger, WakeableDelay } from '@tollgate/runtime';
import type { CredentialRecord } from '../credential-store';
import { KEYS } from './keys';

/**
 * The longest that a change whose notification was lost stays unseen, give or take a round trip: well below the
 * promised second.
 */
export const CHECK_INTERVAL_MS = 300;
const MAX_RECORDS_PER_CHECK = 1_000;
/**
 * Changes that nobody asked for in so long may be forgotten by the store: half of the time that it remembers a
 * revocation since it was written (lua/credentials.lua).
 */
const MAX_UNHEARD_MS = 12 * 3_600_000;

export interface FeedListener {
  /** Records that were written since the last call, in the order of their changes. */
  changed(records: CredentialRecord[]): void;
  /** So much time has passed since the last call that changes may be missing. */
  missed(): void;
  /** All that was written before this moment of `performance.now()` has been told. */
  upTo(ms: number): void;
  /**
   * The store lacks credentials, or may lack some (after a restart or a failover). Called at every check while that is
   * so.
   */
  notComplete(): void;
}

interface Changes {
  generation: string;
  /** It can be read. */
  complete: boolean;
  /** And has been since this server started. */
  sure: boolean;
  /** Of the last change. */
  number: number;
  changed: CredentialRecord[];
  /** Of the last one in `changed`. */
  last: number;
}

/**
 * Follows the changes of the store: asks for all behind the last one seen when a notification comes, every
 * CHECK_INTERVAL_MS, and as soon as a lost connection is back.
 *
 * Redis may lose what it had. Then its generation is another one, or (an older copy) its last change is before the one
 * seen: its changes are followed from the first one on, and nothing in memory is forgotten: what auth writes anew are
 * changes like others, and no older version replaces a newer one.
 */
export class ChangeFeed {
  private seen = 0;
  private generation = '';
  private complete = true;
  private heard = now();
  private stopped = false;
  private readonly news = new WakeableDelay();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly link: RedisLink,
    private readonly listener: FeedListener,
  ) {}

  /** Rejects when the store cannot be reached. All changes from here on are told. */
  async start(): Promise<void> {
    const askedMs = performance.now();
    const { number, generation } = await this.ask(Number.MAX_SAFE_INTEGER);
    [this.seen, this.generation] = [number, generation];
    this.heard = now();
    this.listener.upTo(askedMs);
    this.link.client.on('ready', () => this.wake());
    this.wake();
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.wake();
    await this.running;
  }

  wake(): void {
    this.news.wake();
  }

  private async run(): Promise<void> {
    let lost = false;
    while (!this.stopped) {
      await this.news.wait(CHECK_INTERVAL_MS);
      if (this.stopped) return;
      try {
        await this.check();
        if (lost) logger('credentials').info('credential store: connected again, up to date');
        lost = false;
      } catch (error) {
        if (!lost)
          logger('credentials').warn(
            { reason: (error as Error).message },
            'credential store: not to be reached; nobody is let in who might have been revoked',
          );
        lost = true;
      }
    }
  }

  private async check(): Promise<void> {
    for (;;) {
      const askedMs = performance.now();
      const asked = now();
      const store = await this.ask(this.seen);
      const { generation, number, changed } = store;
      if (generation !== this.generation) {
        this.generation = generation;
        this.seen = 0;
        continue;
      }
      if (number < this.seen) {
        logger('credentials').warn('credential store: an older copy; it is to be filled again');
        await this.link.one({ function: 'not_complete', keys: KEYS, args: [generation] });
        this.seen = 0;
        continue;
      }
      if (sinceMs(this.heard) > MAX_UNHEARD_MS) this.listener.missed();
      this.listener.changed(changed);
      this.seen = store.last;
      this.tell(store);
      if (changed.length >= MAX_RECORDS_PER_CHECK) continue;
      this.heard = asked;
      this.listener.upTo(askedMs);
      return;
    }
  }

  private tell({ complete, sure }: Changes): void {
    if (complete !== this.complete) {
      const log = logger('credentials');
      if (complete) log.info('credential store: complete');
      else log.warn('credential store: not complete; memory serves, unknown values are refused until it is filled');
    }
    this.complete = complete;
    if (!sure) this.listener.notComplete();
  }

  private async ask(after: number): Promise<Changes> {
    const reply = await this.link.one({ function: 'changes', keys: KEYS, args: [after, MAX_RECORDS_PER_CHECK] });
    const [generation, complete, sure, number, list] = reply as [string, number, number, number, (number | string)[]];
    const changed: CredentialRecord[] = [];
    for (let i = 1; i < list.length; i += 2) changed.push(JSON.parse(list[i] as string) as CredentialRecord);
    const last = (list.at(-2) as number | undefined) ?? after;
    return { generation, complete: complete === 1, sure: sure === 1, number, changed, last };
  }
}

/** By two clocks: the one that nobody sets, and the one that goes on while a machine sleeps. */
const now = () => ({ monotonicMs: performance.now(), wallMs: Date.now() });
const sinceMs = ({ monotonicMs, wallMs }: ReturnType<typeof now>) =>
  Math.max(performance.now() - monotonicMs, Date.now() - wallMs);
