import { pauseBeforeStreamMs } from './stream-pause';

const NOW = 1_700_000_000_000;

it.each([
  ['a new answer', NOW, 1_000],
  ['an answer that a link asked for before the click', NOW - 400, 600],
  ['an answer that is as old as numbers get between two looks', NOW - 1_000, 0],
  ['an older answer, as of a tab that was hidden', NOW - 60_000, 0],
  ['no answer', 0, 0],
  ['an answer of a clock that was set back since', NOW + 60_000, 1_000],
])(
  'the stream of %s begins when the answer is a second old, and at once when it is older',
  (_what, answered, pause) => {
    expect(pauseBeforeStreamMs(answered, NOW)).toBe(pause);
  },
);
