import { WaitingLines } from './waiting-line';

const MINUTE_MS = 60_000;
const SPREAD_MS = 400;

/**
 * A limit of requests a minute, as the admission store keeps it: a bucket with one minute of requests that refills
 * evenly. It is empty at the start.
 */
class Bucket {
  private fullAtMs = MINUTE_MS;
  readonly everyMs: number;

  constructor(requestsPerMinute: number) {
    this.everyMs = MINUTE_MS / requestsPerMinute;
  }

  /** 0: the request passes. Otherwise the time until it would pass, in ms. */
  take(nowMs: number): number {
    const after = Math.max(this.fullAtMs, nowMs) + this.everyMs;
    if (after > nowMs + MINUTE_MS) return after - nowMs - MINUTE_MS;
    this.fullAtMs = after;
    return 0;
  }
}

/** Clients of one key that arrive almost at once and retry when told. Returns how often each had to try. */
function tries(
  clients: number,
  requestsPerMinute: number,
  tell: (exactMs: number, nowMs: number, n: number) => number,
): number[] {
  const bucket = new Bucket(requestsPerMinute);
  const coming = Array.from({ length: clients }, (_, n) => ({ n, atMs: (n / clients) * SPREAD_MS, tries: 0 }));
  const served: number[] = [];
  while (coming.length > 0) {
    coming.sort((a, b) => a.atMs - b.atMs);
    const client = coming[0]!;
    client.tries += 1;
    const exactMs = bucket.take(client.atMs);
    if (exactMs === 0) served.push(coming.shift()!.tries);
    // Whole seconds, as in the Retry-After header.
    else client.atMs += Math.max(1, Math.ceil(tell(exactMs, client.atMs, client.n) / 1_000)) * 1_000;
  }
  return served;
}

const most = (numbers: readonly number[]) => Math.max(...numbers);
const mean = (numbers: readonly number[]) => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;

describe('a client that is refused by the same limit as others', () => {
  it.each([
    [45, 30],
    [45, 60],
    [200, 600],
    [60, 60],
  ])('learns when its turn is: %i clients of a key with %i requests a minute need few tries', (clients, perMinute) => {
    let state = 1;
    const random = () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
    const lines = new WaitingLines(random);
    const everyMs = MINUTE_MS / perMinute;
    const exact = tries(clients, perMinute, (exactMs) => exactMs);
    const inLine = tries(clients, perMinute, (exactMs, nowMs) => lines.take({ line: 'key', exactMs, everyMs }, nowMs));
    process.stderr.write(
      `${clients} clients, ${perMinute} a minute: tries by the exact time at most ${most(exact)}, ` +
        `on average ${mean(exact).toFixed(1)}; in line ${most(inLine)} and ${mean(inLine).toFixed(1)}\n`,
    );
    expect(inLine).toHaveLength(clients);
    expect(most(inLine)).toBeLessThanOrEqual(4);
    expect(mean(inLine)).toBeLessThan(mean(exact) / 2);
  });

  it('needs a few more tries with two gateways, which have separate lines', () => {
    const gateways = [new WaitingLines(() => 0.5), new WaitingLines(() => 0.5)];
    const everyMs = MINUTE_MS / 60;
    const told = tries(40, 60, (exactMs, nowMs, n) => gateways[n % 2]!.take({ line: 'key', exactMs, everyMs }, nowMs));
    expect(most(told)).toBeLessThanOrEqual(8);
  });

  it('gets the exact time when it is alone, and never an earlier one', () => {
    const lines = new WaitingLines(() => 0);
    const wait = { line: 'key', exactMs: 1_500, everyMs: 1_000 };
    expect(lines.take(wait, 0)).toBe(1_500);
    expect([lines.take(wait, 0), lines.take(wait, 0)]).toEqual([2_500, 3_500]);
    // Another limit has its own line.
    expect(lines.take({ ...wait, line: 'other' }, 0)).toBe(1_500);
    // By then the others have had their turns.
    expect(lines.take(wait, 10_000)).toBe(1_500);
    expect(lines.take({ ...wait, exactMs: 9_000 }, 10_000)).toBe(9_000);
  });

  it('gets whole seconds whatever the clock says', () => {
    // Between two powers of two, 1,000 ms more cost the clock a bit of its fraction.
    for (let n = 0; n < 1_000; n++) {
      const told = new WaitingLines().take({ line: 'a', exactMs: 1_000, everyMs: 0 }, 32_000 + n * 0.7654321);
      expect(told).toBe(1_000);
    }
  });

  it('waits at most a quarter (up to 5 s) longer than its place, and at most a minute and 5 s in total', () => {
    const lines = new WaitingLines(() => 1);
    const wait = { line: 'key', exactMs: 1_000, everyMs: 1_000 };
    const told = Array.from({ length: 100 }, () => lines.take(wait, 0));
    for (const [place, ms] of told.entries()) {
      expect(ms).toBeGreaterThanOrEqual(Math.min(1_000 * (place + 1), MINUTE_MS));
      expect(ms).toBeLessThanOrEqual(Math.min(1_000 + 1_250 * place, MINUTE_MS + 5_000));
    }
    expect(new WaitingLines(() => 1).take({ ...wait, exactMs: 90_000 }, 0)).toBe(90_000);
  });

  it.each([1_000, 59_000, 90_000])('is spread over 5 s when its place is beyond a minute (exact: %i ms)', (exactMs) => {
    let n = 0;
    const lines = new WaitingLines(() => (n++ % 10) / 10);
    const wait = { line: 'key', exactMs, everyMs: 1_000 };
    const lastMs = Math.max(exactMs, MINUTE_MS);
    for (let place = 0; place < 100; place++) lines.take(wait, 0);
    const told = Array.from({ length: 100 }, () => lines.take(wait, 0));
    expect(Math.min(...told)).toBe(lastMs);
    expect(most(told)).toBeLessThanOrEqual(lastMs + 5_000);
    // In the header's whole seconds no second has more than a fifth of them, apart from rounding.
    const seconds = told.map((ms) => Math.ceil(ms / 1_000));
    for (const second of seconds) expect(seconds.filter((each) => each === second).length).toBeLessThanOrEqual(30);
  });
});
