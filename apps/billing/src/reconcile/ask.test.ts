import { MAX_ROLLUP_AUDIT_MS, UnavailableError } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { askAgain } from './ask';

const SHORT_MS = 9_000;
const FIRST_MS = 60_000;
const TRIES = 4;
const PAGE = { differences: [], nextCursor: null };
const away = () => Promise.reject(new UnavailableError('away'));
const never = () => new Promise<never>(() => {});

/** Metering, and the deadlines of the requests to it. Its last answer is that of all further requests. */
function metering(...answers: (() => Promise<unknown>)[]) {
  const deadlines: (number | undefined)[] = [];
  const request = (_subject: string, _request: unknown, { deadlineMs }: { deadlineMs?: number } = {}) => {
    deadlines.push(deadlineMs);
    return (answers.length > 1 ? answers.shift()! : answers[0]!)();
  };
  return { deadlines, services: { request } as Requests };
}

// The tests do not wait between two tries.
jest.mock('node:timers/promises', () => ({ setTimeout: () => Promise.resolve() }));

let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => jest.restoreAllMocks());

/** An answer that is there after this time. */
const after =
  (forMs: number, answer: () => Promise<unknown>): (() => Promise<unknown>) =>
  () => {
    nowMs += forMs;
    return answer();
  };
const audit = (services: Requests, { signal } = new AbortController()) =>
  askAgain(services, 'metering.rollups.audit', {}, signal);

describe('an audit of rollups', () => {
  it('may take longer than other requests, and a killed process of metering delays it for a minute only', async () => {
    const rest = MAX_ROLLUP_AUDIT_MS - FIRST_MS;
    const { services, deadlines } = metering(
      after(FIRST_MS, away),
      after(rest - 1, () => Promise.resolve(PAGE)),
    );
    expect(await audit(services)).toBe(PAGE);
    expect(deadlines).toEqual([FIRST_MS, rest]);
  });

  it('is tried again in the time that is left, when metering was away for a moment', async () => {
    const { services, deadlines } = metering(after(SHORT_MS, away), () => Promise.resolve(PAGE));
    expect(await audit(services)).toBe(PAGE);
    expect(deadlines).toEqual([FIRST_MS, MAX_ROLLUP_AUDIT_MS - SHORT_MS]);
  });

  it('is not tried again when it has used up its time', async () => {
    const { services, deadlines } = metering(after(MAX_ROLLUP_AUDIT_MS, away));
    await expect(audit(services)).rejects.toThrow('away');
    expect(deadlines).toHaveLength(1);
  });

  it('is awaited no longer when the run stops', async () => {
    const { services } = metering(never);
    const stop = new AbortController();
    const asked = audit(services, stop);
    stop.abort(new UnavailableError('stopping'));
    await expect(asked).rejects.toThrow('stopping');
  });
});

it('any other request is tried some times, each for a short time', async () => {
  const { services, deadlines } = metering(after(SHORT_MS, away));
  const asked = askAgain(services, 'metering.months.list', {}, new AbortController().signal);
  await expect(asked).rejects.toThrow('away');
  expect(deadlines).toEqual(Array.from({ length: TRIES }, () => SHORT_MS));
});
