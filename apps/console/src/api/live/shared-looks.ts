import { delayUntilAborted } from '@tollgate/runtime';

/**
 * The interval between two looks. A number is at most two seconds old: the interval and the duration of a look.
 */
const LOOK_EVERY_MS = 1_000;
/** The least pause, after a slow look. */
const MIN_PAUSE_MS = 200;

export interface Look {
  /** What the services answer, as JSON. */
  text: Promise<string>;
}

/** Looks once a second while somebody follows. */
class SharedLook {
  private current: Look | null = null;
  private readonly waiting = new Set<(look: Look | null) => void>();
  private readonly ended = new AbortController();
  private followers = 0;

  constructor(
    private readonly read: () => Promise<unknown>,
    private readonly onEnd: () => void,
  ) {}

  join(): void {
    if (this.followers++ === 0) void this.run();
  }

  /** The last follower ends it. */
  leave(): void {
    if (--this.followers > 0) return;
    this.onEnd();
    this.ended.abort();
  }

  /** The newest look, which may be under way. It began at most a second ago, unless looks are slow. */
  get newest(): Look {
    return this.current!;
  }

  /** The newest look, or the next one if that was seen, when it begins. Null: the signal came first. */
  after(seen: Look, signal: AbortSignal): Promise<Look | null> {
    if (signal.aborted) return Promise.resolve(null);
    if (this.newest !== seen) return Promise.resolve(this.newest);
    return new Promise((resolve) => {
      const settle = (look: Look | null) => {
        signal.removeEventListener('abort', onAbort);
        this.waiting.delete(settle);
        resolve(look);
      };
      const onAbort = () => settle(null);
      signal.addEventListener('abort', onAbort);
      this.waiting.add(settle);
    });
  }

  private async run(): Promise<void> {
    const { signal } = this.ended;
    while (!signal.aborted) {
      const beganAtMs = performance.now();
      const look = { text: (async () => JSON.stringify(await this.read()))() };
      this.current = look;
      for (const settle of [...this.waiting]) settle(look);
      // Each follower has the error, too.
      await look.text.catch(() => {});
      const pauseMs = Math.max(MIN_PAUSE_MS, beganAtMs + LOOK_EVERY_MS - performance.now());
      await delayUntilAborted(pauseMs, signal);
    }
  }
}

export type Following = Pick<SharedLook, 'newest' | 'after' | 'leave'>;

/** All who follow the same thing share one look at it, however many they are. */
export class SharedLooks {
  private readonly looks = new Map<string, SharedLook>();

  /** Until `leave`. `read` must be the same for each name, whoever asks. */
  follow(name: string, read: () => Promise<unknown>): Following {
    let look = this.looks.get(name);
    if (!look) this.looks.set(name, (look = new SharedLook(read, () => this.looks.delete(name))));
    look.join();
    return look;
  }
}
