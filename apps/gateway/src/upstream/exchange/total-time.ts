import type { Backend } from '../../catalog/catalog';

/**
 * The time limit that all attempts of a request share. It begins with the first attempt, so a request that waits for
 * its first place loses nothing of it. Each backend has its own limit, from that beginning.
 */
export class TotalTime {
  /** By `performance.now()`. 0: nothing was attempted. */
  private beganAtMs = 0;
  /** When the time of the backend asked last is over, by `performance.now()`. */
  endsAtMs = Infinity;
  /** The part of its limit that was left for the backend asked last. */
  leftMs = Infinity;
  /**
   * That part is less than half of the limit, as earlier attempts took the remainder, or the backend had to wait for
   * us. So a timeout says nothing about this backend.
   */
  isShort = false;

  /** @param defaultMs for backends without a limit of their own */
  constructor(private readonly defaultMs: number) {}

  /** An attempt at the backend begins. It has 1 ms at least. */
  begin(backend: Backend, nowMs: number): void {
    this.beganAtMs ||= nowMs;
    this.endsAtMs = this.endFor(backend);
    this.leftMs = Math.max(1, Math.ceil(this.endsAtMs - nowMs));
    this.isShort = this.leftMs < nowMs - this.beganAtMs;
  }

  /** The backend asked last has to wait. */
  wasPaused(): void {
    this.isShort = true;
  }

  /** Whether the time is over by the limit of the backend asked last. Reads the clock, so not for each chunk. */
  get isOver(): boolean {
    return this.endsAtMs !== Infinity && performance.now() >= this.endsAtMs;
  }

  /** Whether an attempt at the backend would have no time left. */
  isOverFor(backend: Backend, nowMs: number): boolean {
    return this.beganAtMs > 0 && nowMs >= this.endFor(backend);
  }

  private endFor({ timeouts }: Backend): number {
    return this.beganAtMs + (timeouts.totalMs ?? this.defaultMs);
  }
}
