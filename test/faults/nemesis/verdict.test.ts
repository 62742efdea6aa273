import type { Outcome } from '../client-request';
import { isByStandstill } from './verdict';

const outcome = (failure: string) => ({ failure, endedMs: 10_000 }) as Outcome;
/** A machine that takes this long for 5 ms of work. */
const machine = (ms: number) => ({ meanMs: () => ms });

describe('a failure is by a standstill of the machine', () => {
  it.each(['broken', '502 upstream_error', '503 overloaded_error', 'event overloaded_error'])('%s', (failure) => {
    expect(isByStandstill(outcome(failure), machine(200))).toBe(true);
    expect(isByStandstill(outcome(failure), machine(20))).toBe(false);
  });

  it.each(['402 credit_exhausted', '500 internal_error', '429 rate_limited'])('never %s', (failure) =>
    expect(isByStandstill(outcome(failure), machine(200))).toBe(false),
  );
});
