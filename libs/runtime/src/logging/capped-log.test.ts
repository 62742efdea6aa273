import { logCapped, MAX_LINES_PER_WINDOW } from './capped-log';
import type { Logger } from './logging';

beforeEach(() => jest.useFakeTimers());
afterEach(() => {
  jest.runAllTimers();
  jest.useRealTimers();
});

function recorder() {
  const lines: [object, string][] = [];
  const write = (about: object, message: string) => void lines.push([about, message]);
  return { lines, log: { warn: write, error: write } as unknown as Logger };
}

it('a message has at most twenty lines a minute, then one with the number of the others; others keep theirs', () => {
  const { lines, log } = recorder();
  for (let n = 0; n < 100_000; n++) logCapped(log, 'error', { n }, 'forged');
  logCapped(log, 'warn', { n: 0 }, 'unreadable');
  expect(lines).toHaveLength(MAX_LINES_PER_WINDOW + 1);
  expect(lines[0]).toEqual([{ n: 0 }, 'forged']);
  expect(lines.at(-1)).toEqual([{ n: 0 }, 'unreadable']);
  jest.advanceTimersByTime(60_000);
  expect(lines.slice(MAX_LINES_PER_WINDOW + 1)).toEqual([
    [{ more: 100_000 - MAX_LINES_PER_WINDOW, withinMs: 60_000 }, 'forged: more of these were not logged'],
  ]);
});

it('a message has twenty lines again in the next minute, and no summary while it stays below', () => {
  const { lines, log } = recorder();
  for (let minute = 0; minute < 3; minute++) {
    for (let n = 0; n < MAX_LINES_PER_WINDOW; n++) logCapped(log, 'error', { minute }, 'forged');
    jest.advanceTimersByTime(60_000);
  }
  expect(lines).toHaveLength(3 * MAX_LINES_PER_WINDOW);
});
