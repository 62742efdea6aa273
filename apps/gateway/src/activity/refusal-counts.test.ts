import {
  MAX_REFUSAL_COUNTS,
  MAX_REFUSED_IN_REPORT,
  newId,
  RequestError,
  UnavailableError,
  type RefusalCount,
  type RefusedRequest,
} from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { RefusalCounts } from './refusal-counts';
import { RefusalSamples } from './refusal-samples';

const HOUR = Date.parse('2026-03-01T10:00:00.000Z');
const HOUR_MS = 3_600_000;
const owner = { tenantId: newId('ten'), keyId: newId('key') };
const other = { ...owner, keyId: newId('key') };

/** A fake of metering: it accepts reports, or fails with the given error. */
function metering() {
  const taken: { source: string; counts: RefusalCount[]; refused?: RefusedRequest[] }[] = [];
  const self = { failure: null as Error | null, asked: 0 };
  const request = (_subject: string, report: (typeof taken)[number]) => {
    self.asked += 1;
    if (self.failure) return Promise.reject(self.failure);
    taken.push(structuredClone(report));
    return Promise.resolve({ recorded: true });
  };
  return { self, taken, messages: { request } as unknown as Messages };
}

describe('the counts of refused requests', () => {
  it('are reported by key, code and hour, under the name of the process, when they have grown', async () => {
    const { messages, taken } = metering();
    const counts = new RefusalCounts(messages);
    for (const ms of [HOUR, HOUR + 1]) counts.count(owner, 'credit_held', ms);
    counts.count(owner, 'api_error', HOUR);
    await counts.report();
    await counts.report();
    counts.count(owner, 'credit_held', HOUR + 2);
    counts.count(other, 'credit_held', HOUR + HOUR_MS);
    await counts.report();
    const hour = '2026-03-01T10:00:00.000Z';
    expect(taken.map((report) => report.counts)).toEqual([
      [
        { ...owner, hour, code: 'credit_held', requests: 2 },
        { ...owner, hour, code: 'api_error', requests: 1 },
      ],
      [
        { ...owner, hour, code: 'credit_held', requests: 3 },
        { ...other, hour: '2026-03-01T11:00:00.000Z', code: 'credit_held', requests: 1 },
      ],
    ]);
    expect(new Set(taken.map(({ source }) => source)).size).toBe(1);
  });

  it('are sent again while metering is down, with those that came since, and also after their hour', async () => {
    const { self, messages, taken } = metering();
    const counts = new RefusalCounts(messages);
    counts.count(owner, 'credit_held', HOUR);
    self.failure = new UnavailableError('away');
    await counts.report();
    counts.count(owner, 'credit_held', HOUR);
    counts.count(owner, 'credit_held', HOUR + HOUR_MS);
    self.failure = null;
    await counts.report();
    expect(taken.map((report) => report.counts.map(({ requests }) => requests))).toEqual([[2, 1]]);
  });

  it('that were refused are not sent again, and later ones are', async () => {
    const { self, messages, taken } = metering();
    const counts = new RefusalCounts(messages);
    counts.count(owner, 'credit_held', HOUR);
    self.failure = new RequestError('invalid_parameter', 'no');
    await counts.report();
    await counts.report();
    expect(self.asked).toBe(1);
    self.failure = null;
    counts.count(owner, 'credit_held', HOUR);
    await counts.report();
    expect(taken[0]!.counts[0]!.requests).toBe(2);
  });

  it('are bounded in number, and a new hour has room again', async () => {
    const { messages, taken } = metering();
    const counts = new RefusalCounts(messages, new RefusalSamples(), 1);
    for (const key of [owner, other]) counts.count(key, 'credit_held', HOUR);
    await counts.report();
    counts.count(other, 'credit_held', HOUR + HOUR_MS);
    await counts.report();
    expect(taken.map((report) => report.counts.map(({ keyId }) => keyId))).toEqual([[owner.keyId], [other.keyId]]);
  });

  it('go out in messages of bounded length, with the kept refused requests', async () => {
    const { messages, taken } = metering();
    const samples = new RefusalSamples();
    const refused = { id: newId('req'), ...owner, at: new Date(HOUR).toISOString(), code: 'api_error' };
    const counts = new RefusalCounts(messages, samples);
    for (let i = 0; i <= MAX_REFUSAL_COUNTS; i++) counts.count({ ...owner, keyId: `key ${i}` }, 'api_error', HOUR);
    for (let i = 0; i <= 2 * MAX_REFUSED_IN_REPORT; i++) samples.note(`key ${i}`, 'api_error', () => refused);
    await counts.report();
    expect(taken.map(({ counts, refused }) => [counts.length, refused?.length])).toEqual([
      [MAX_REFUSAL_COUNTS, MAX_REFUSED_IN_REPORT],
      [1, MAX_REFUSED_IN_REPORT],
      [0, 1],
    ]);
  });

  it('take the kept refused requests along, also without new counts, until they are received', async () => {
    const { self, messages, taken } = metering();
    const samples = new RefusalSamples();
    const counts = new RefusalCounts(messages, samples);
    const refused = { id: newId('req'), ...owner, at: new Date(HOUR).toISOString(), code: 'credit_held' };
    samples.note(owner.keyId, 'credit_held', () => refused);
    self.failure = new UnavailableError('away');
    await counts.report();
    self.failure = null;
    await counts.report();
    await counts.report();
    expect(taken).toEqual([{ source: expect.any(String), counts: [], refused: [refused] }]);
  });
});
