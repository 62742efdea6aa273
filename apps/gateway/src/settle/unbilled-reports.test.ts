import { RequestError, UnavailableError, type UnbilledWork } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { UnbilledReports } from './unbilled-reports';

const HOUR = Date.parse('2026-03-01T10:00:00.000Z');
const MINUTE_MS = 60_000;

/** A fake of metering: it accepts reports, or fails with the given error. */
function metering() {
  const taken: { id: string; work: UnbilledWork[] }[] = [];
  const self = { taken, asked: 0, failure: null as Error | null };
  const request = (_subject: string, report: (typeof taken)[number]) => {
    self.asked += 1;
    if (self.failure) return Promise.reject(self.failure);
    taken.push(structuredClone(report));
    return Promise.resolve({ recorded: true });
  };
  return { ...self, self, messages: { request } as unknown as Messages };
}

const work = (backend: string, promptTokens: number, completionTokens: number) => ({
  backend,
  promptTokens,
  completionTokens,
});

describe('the reporter of unbilled work', () => {
  it('sums uncharged work by backend and hour, and counts a request fully in each hour that it ran in', async () => {
    const { messages, taken } = metering();
    const reports = new UnbilledReports(messages);
    reports.note({ sinceMs: HOUR, work: [work('a', 10, 1), work('b', 5, 0), work('c', 0, 0)] }, HOUR + 1);
    reports.note({ sinceMs: HOUR - MINUTE_MS, work: [work('a', 100, 10)] }, HOUR + MINUTE_MS);
    await reports.flush();
    expect(taken.map((report) => report.work)).toEqual([
      [
        { ...work('a', 110, 11), hour: '2026-03-01T10:00:00.000Z' },
        { ...work('b', 5, 0), hour: '2026-03-01T10:00:00.000Z' },
        { ...work('a', 100, 10), hour: '2026-03-01T09:00:00.000Z' },
      ],
    ]);
  });

  it('sends an unanswered report again unchanged under its id, and later work in another report', async () => {
    const { self, messages, taken } = metering();
    const reports = new UnbilledReports(messages);
    reports.note({ sinceMs: HOUR, work: [work('a', 1, 1)] }, HOUR);
    self.failure = new UnavailableError('away');
    await reports.flush();
    expect(taken).toEqual([]);
    reports.note({ sinceMs: HOUR, work: [work('a', 2, 2)] }, HOUR);
    self.failure = null;
    await reports.flush();
    expect(taken.map((report) => report.work.map(({ promptTokens }) => promptTokens))).toEqual([[1], [2]]);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(2);
    await reports.flush();
    expect(taken).toHaveLength(2);
  });

  it('drops a report that is refused', async () => {
    const { self, messages } = metering();
    const reports = new UnbilledReports(messages);
    reports.note({ sinceMs: HOUR, work: [work('a', 1, 1)] }, HOUR);
    self.failure = new RequestError('invalid_parameter', 'no');
    await reports.flush();
    await reports.flush();
    expect(self.asked).toBe(1);
  });
});
