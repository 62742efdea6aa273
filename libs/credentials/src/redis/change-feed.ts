import type { RedisLink } from '@tollgate/redis';
import { logger, WakeableDelay } from '@tollgate/runtime';
import type { CredentialRecord } from '../credential-store';
import { KEYS } from './keys';

/**
 * The maximum delay of a change whose notification was lost, plus or minus a round trip. Far below the promised second.
 */
const CHECK_INTERVAL_MS = 300;
const MAX_RECORDS_PER_CHECK = 1_000;
/**
 * The store may forget changes that nobody asked for in this time: half of the time for which it remembers a revocation
 * (lua/credentials.lua).
 */
const MAX_UNHEARD_MS = 12 * 3_600_000;

export interface FeedListener {
  /** Called with the records that were written since the last call, in the order of their changes. */
  changed(records: CredentialRecord[]): void;
  /** Changes may be missing, because the last call was too long ago. */
  missed(): void;
  /** Everything that was written before this moment of `performance.now()` has been passed on. */
  upTo(ms: number): void;
  /**
   * The store lacks credentials, or may lack some (after a restart or a failover). Called at every check while that is
   * so.
   */
  notComplete(): void;
}

interface Changes {
  generation: string;
  /** Whether the store can be read. */
  complete: boolean;
  /** Whether it has been complete since this server started, and was last promoted. */
  sure: boolean;
  /** The number of the last change. */
  number: number;
  changed: CredentialRecord[];
  /** The number of the last change in `changed`. */
  last: number;
}

/**
 * Follows the changes of the store. It asks for all changes after the last one seen: on a notification, every
 * CHECK_INTERVAL_MS, and as soon as a lost connection is back.
 * Redis may lose data. Then its generation differs, or (an older copy) its last change is before the one seen. The feed
 * then follows its changes from the first one on, and memory forgets nothing: records that auth writes again are
 * ordinary changes, and no older version replaces a newer one.
 */
export class ChangeFeed {
  private seen = 0;
  private generation = '';
  private complete = true;
  private heard = now();
  private stopped = false;
  private readonly wakeUp = new WakeableDelay();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly link: RedisLink,
    private readonly listener: FeedListener,
  ) {}

  /** Rejects when the store cannot be reached. All changes from here on are passed on. */
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
    this.wakeUp.wake();
  }

  private async run(): Promise<void> {
    let lost = false;
    while (!this.stopped) {
      await this.wakeUp.wait(CHECK_INTERVAL_MS);
      if (this.stopped) return;
      try {
        await this.check();
        if (lost) logger('credentials').info('credential store: connected again, up to date');
        lost = false;
      } catch (error) {
        if (!lost)
          logger('credentials').warn(
            { reason: (error as Error).message },
            'credential store: not reachable; look-ups are refused because revocations might be missing',
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
        logger('credentials').warn('credential store: restored from an older copy; refilling it');
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
      else log.warn('credential store: incomplete; until it is filled, only remembered credentials are accepted');
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

/** By two clocks: the monotonic one, and the one that continues while a machine sleeps. */
const now = () => ({ monotonicMs: performance.now(), wallMs: Date.now() });
const sinceMs = ({ monotonicMs, wallMs }: ReturnType<typeof now>) =>
  Math.max(performance.now() - monotonicMs, Date.now() - wallMs);
