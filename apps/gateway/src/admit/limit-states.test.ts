import { LimitStates } from './limit-states';

const LIMITS = { requestsPerMinute: 60, tokensPerMinute: 6_000, concurrency: 1 };
const FULL = { requestsRemaining: 60, requestsResetMs: 0, tokensRemaining: 6_000, tokensResetMs: 0 };

it('the last known state of a key refills evenly, and the state of an unknown key is full', () => {
  const states = new LimitStates();
  expect(states.now('a', LIMITS, 0)).toEqual(FULL);
  states.note(
    'a',
    { requestsRemaining: 10, requestsResetMs: 50_000, tokensRemaining: 0, tokensResetMs: 60_000 },
    1_000,
  );
  expect(states.now('a', LIMITS, 1_000)).toEqual({
    requestsRemaining: 10,
    requestsResetMs: 50_000,
    tokensRemaining: 0,
    tokensResetMs: 60_000,
  });
  expect(states.now('a', LIMITS, 31_000)).toEqual({
    requestsRemaining: 40,
    requestsResetMs: 20_000,
    tokensRemaining: 3_000,
    tokensResetMs: 30_000,
  });
  expect(states.now('a', LIMITS, 61_000)).toEqual(FULL);
  expect(states.now('b', LIMITS, 61_000)).toEqual(FULL);
});
