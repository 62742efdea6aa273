import type { Logger } from './logging';

/** Of one message, in a process. */
export const MAX_LINES_PER_WINDOW = 20;
const WINDOW_MS = 60_000;

interface Window {
  lines: number;
  /** Not written. */
  more: number;
}

const windows = new Map<string, Window>();

/**
 * For what anybody outside can cause as often as they like, as whoever may write to a topic: the first
 * MAX_LINES_PER_WINDOW of a message in a minute have a line each, and one at its end says how many more there were. A
 * metric counts them all. `message` is a constant, as it is remembered: what differs goes into `about`.
 */
export function logCapped(log: Logger, level: 'warn' | 'error', about: object, message: string): void {
  let window = windows.get(message);
  if (!window) {
    windows.set(message, (window = { lines: 0, more: 0 }));
    const close = () => {
      const { more } = windows.get(message)!;
      windows.delete(message);
      if (more > 0) log[level]({ more, withinMs: WINDOW_MS }, `${message}: so many more, without a line each`);
    };
    setTimeout(close, WINDOW_MS).unref();
  }
  if (window.lines >= MAX_LINES_PER_WINDOW) {
    window.more++;
    return;
  }
  window.lines++;
  log[level](about, message);
}
