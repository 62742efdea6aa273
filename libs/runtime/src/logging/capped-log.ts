import type { Logger } from './logging';

/** The maximum lines of one message in a process. */
export const MAX_LINES_PER_WINDOW = 20;
const WINDOW_MS = 60_000;

interface Window {
  lines: number;
  /** How many were not logged. */
  more: number;
}

const windows = new Map<string, Window>();

/**
 * For messages that anybody outside can cause at will, such as everyone who may write to a topic. In each minute the
 * first MAX_LINES_PER_WINDOW of a message are logged, and then a line with the number of the others. A metric counts
 * them all. `message` must be a constant, because it is remembered. What differs goes into `about`.
 */
export function logCapped(log: Logger, level: 'warn' | 'error', about: object, message: string): void {
  let window = windows.get(message);
  if (!window) {
    windows.set(message, (window = { lines: 0, more: 0 }));
    const close = () => {
      const { more } = windows.get(message)!;
      windows.delete(message);
      if (more > 0) log[level]({ more, withinMs: WINDOW_MS }, `${message}: more of these were not logged`);
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
