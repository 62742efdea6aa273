import { PacedReports, type Reported } from './paced-reports';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const done = (rows: number): Reported => ({ rows, isComplete: true });

/** Reports as they are made, each with its time. `outcome` is their result. */
function reports() {
  const beganMs = performance.now();
  const self = { atMs: [] as number[], outcome: done(1) as Reported | Promise<Reported> };
  const paced = new PacedReports(async () => {
    self.atMs.push(performance.now() - beganMs);
    return self.outcome;
  });
  return Object.assign(self, { paced });
}

describe('reports', () => {
  it('follow the first change within half a second, and there is no timer without a change', async () => {
    const { paced, atMs } = reports();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(jest.getTimerCount()).toBe(0);
    paced.ask();
    expect(jest.getTimerCount()).toBe(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(atMs).toEqual([60_500]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('are one for all changes until then, and two a second while there are always changes', async () => {
    const { paced, atMs } = reports();
    for (let ms = 0; ms < 3_000; ms += 10) {
      for (let request = 0; request < 5; request++) paced.ask();
      expect(jest.getTimerCount()).toBe(1);
      await jest.advanceTimersByTimeAsync(10);
    }
    expect(atMs).toEqual([500, 1_000, 1_500, 2_000, 2_500, 3_000]);
  });

  it.each([
    [25, 500],
    [50, 1_000],
    [200, 4_000],
    [20_000, 10_000],
  ])('of %i rows are followed by the next after %i ms', async (rows, pauseMs) => {
    const self = reports();
    self.outcome = done(rows);
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(500);
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(self.atMs).toEqual([500, 500 + pauseMs]);
  });

  it('that are asked for while one is made follow it, and never run beside it', async () => {
    const self = reports();
    let end!: (outcome: Reported) => void;
    self.outcome = new Promise((resolve) => (end = resolve));
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(500);
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(self.atMs).toEqual([500]);
    self.outcome = done(0);
    end(done(1));
    await jest.advanceTimersByTimeAsync(60_000);
    expect(self.atMs).toEqual([500, 6_000]);
  });

  it('that failed are repeated without a change, every three seconds', async () => {
    const self = reports();
    self.outcome = { rows: 1, isComplete: false };
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(4_000);
    self.outcome = done(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(self.atMs).toEqual([500, 3_500, 6_500]);
  });

  it('that have to come later are made without a change, and earlier with one', async () => {
    const self = reports();
    self.outcome = { ...done(1), nextInMs: 20_000 };
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(21_000);
    self.outcome = done(1);
    self.paced.ask();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(self.atMs).toEqual([500, 20_500, 21_500]);
  });

  it('that are wanted now come after the one that is under way, and have what was known then', async () => {
    const self = reports();
    let end!: (outcome: Reported) => void;
    self.outcome = new Promise((resolve) => (end = resolve));
    const first = self.paced.now();
    let isOver = false;
    const second = self.paced.now().then(() => (isOver = true));
    await jest.advanceTimersByTimeAsync(1_000);
    expect([self.atMs, isOver]).toEqual([[0], false]);
    self.outcome = done(0);
    end(done(1));
    await Promise.all([first, second]);
    expect(self.atMs).toEqual([0, 1_000]);
  });

  it('are not planned any more once they are closed', async () => {
    const { paced, atMs } = reports();
    paced.ask();
    paced.close();
    await paced.now();
    paced.ask();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(atMs).toEqual([0]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
