import { newId, UnavailableError } from '@tollgate/contracts';
import { LastUses } from './last-uses';

const [KEY, OTHER] = [newId('key'), newId('key')];
const REST_MS = 60_000;
const SECOND_MS = 1_000;

beforeEach(() => jest.useFakeTimers({ now: 0 }));
afterEach(() => jest.useRealTimers());

/** A fake of auth: the time of each report, and the uses in it. */
function auth() {
  const self = { failure: null as Error | null, reports: [] as { atMs: number; uses: [id: string, atMs: number][] }[] };
  const request = (_subject: string, { uses }: { uses: { id: string; at: string }[] }) => {
    if (self.failure) return Promise.reject(self.failure);
    self.reports.push({ atMs: Date.now(), uses: uses.map(({ id, at }) => [id, Date.parse(at)]) });
    return Promise.resolve({ recorded: uses.length });
  };
  const lastUses = new LastUses({ request }, 'auth.keys.used', REST_MS);
  return Object.assign(self, { lastUses });
}

it('the first use after a quiet time is reported within half a second, and nothing without a use', async () => {
  const { lastUses, reports } = auth();
  for (const beganMs of [0, 200_000]) {
    jest.setSystemTime(beganMs);
    lastUses.record(KEY, beganMs);
    await jest.advanceTimersByTimeAsync(500);
    expect(reports.pop()).toEqual({ atMs: beganMs + 500, uses: [[KEY, beganMs]] });
    await jest.advanceTimersByTimeAsync(150_000);
    expect(reports).toEqual([]);
    // Nothing is known of a key that has rested.
    expect(jest.getTimerCount()).toBe(0);
  }
});

it('a key that works all day changes its row once a minute at most, and its last use is not lost', async () => {
  const { lastUses, reports } = auth();
  let lastMs = 0;
  for (let n = 0; n < 600; n++) {
    lastUses.record(KEY, (lastMs = Date.now()));
    await jest.advanceTimersByTimeAsync(500);
  }
  await jest.advanceTimersByTimeAsync(2 * REST_MS);
  expect(reports.length).toBeGreaterThanOrEqual(5);
  for (const [index, { atMs }] of reports.entries())
    if (index > 0) {
      const pauseMs = atMs - reports[index - 1]!.atMs;
      expect(pauseMs).toBeGreaterThanOrEqual(REST_MS - 1);
      expect(pauseMs).toBeLessThanOrEqual(REST_MS + SECOND_MS);
    }
  expect(reports.at(-1)!.uses).toEqual([[KEY, lastMs]]);
});

it('a key of a busy gateway is reported as early, and does not wait for those that rest', async () => {
  const { lastUses, reports } = auth();
  lastUses.record(KEY, 0);
  await jest.advanceTimersByTimeAsync(10 * SECOND_MS);
  lastUses.record(KEY, Date.now());
  lastUses.record(OTHER, Date.now());
  await jest.advanceTimersByTimeAsync(500);
  expect(reports.map(({ uses }) => uses)).toEqual([[[KEY, 0]], [[OTHER, 10 * SECOND_MS]]]);
});

it('many busy keys do not become as many reports', async () => {
  const { lastUses, reports } = auth();
  const keys = Array.from({ length: 100 }, (_, n) => `key ${n}`);
  // Each begins at its own moment.
  for (let n = 0; n < 600; n++) {
    for (const key of keys.slice(0, n + 1)) lastUses.record(key, Date.now());
    await jest.advanceTimersByTimeAsync(500);
  }
  const lastMinute = reports.filter(({ atMs }) => atMs > 240_000);
  expect(lastMinute.length).toBeLessThanOrEqual(7);
  const sent = lastMinute.flatMap(({ uses }) => uses.map(([id]) => id));
  expect(new Set(sent).size).toBe(sent.length);
  expect(sent.length).toBeGreaterThan(80);
});

it('uses that auth did not take are sent again, with their newest time', async () => {
  const self = auth();
  self.failure = new UnavailableError('away');
  self.lastUses.record(KEY, 1);
  await jest.advanceTimersByTimeAsync(2 * SECOND_MS);
  self.lastUses.record(KEY, 2_000);
  self.failure = null;
  await jest.advanceTimersByTimeAsync(2 * SECOND_MS);
  expect(self.reports).toEqual([{ atMs: 3_500, uses: [[KEY, 2_000]] }]);
});

it('a flush also sends the uses of keys that rest, once', async () => {
  const { lastUses, reports } = auth();
  lastUses.record(KEY, 1);
  await lastUses.flush();
  lastUses.record(KEY, 2);
  lastUses.record(OTHER, 3);
  lastUses.close();
  await lastUses.flush();
  await lastUses.flush();
  expect(reports.map(({ uses }) => uses)).toEqual([
    [[KEY, 1]],
    [
      [KEY, 2],
      [OTHER, 3],
    ],
  ]);
  expect(jest.getTimerCount()).toBe(0);
});

it('a further key beside as many busy ones as are known is reported, unless auth is down', async () => {
  const { lastUses, reports } = auth();
  const busy = Array.from({ length: 10_000 }, (_, n) => `key ${n}`);
  const use = () => {
    for (const key of busy) lastUses.record(key, Date.now());
  };
  use();
  // None is reported yet, so there is no place.
  lastUses.record(OTHER, Date.now());
  await jest.advanceTimersByTimeAsync(SECOND_MS);
  const reported = () => reports.some(({ uses }) => uses.some(([id]) => id === OTHER));
  expect(reported()).toBe(false);
  use();
  lastUses.record(OTHER, Date.now());
  await jest.advanceTimersByTimeAsync(REST_MS);
  expect(reported()).toBe(true);
});
