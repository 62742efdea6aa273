import type { BackendHour, BackendTokens } from '@tollgate/contracts';
import { comparison } from './reconcile-backends';

const tokens = (verdict: BackendTokens['verdict']): BackendTokens => {
  return { engine: 10, booked: 10, least: 10, most: 10, unbilled: 0, drift: 0, driftRatio: 0, verdict };
};

/** An hour of one engine with these verdicts on its prompt and its generation. */
function hour(prompt: BackendTokens['verdict'], generation = prompt): BackendHour {
  const books = { requests: 1, estimatedRequests: 0, restarts: 0 };
  const of = { engine: 'http://gpu/metrics', backends: ['http://gpu/v1'], hour: '2026-11-24T10:00:00.000Z' };
  return { ...of, ...books, prompt: tokens(prompt), generation: tokens(generation) };
}

describe('the comparison of the books with the engines', () => {
  it.each<[string, BackendHour[], string]>([
    ['an hour that agrees', [hour('agrees'), hour('running')], 'agree in the 1 hour that was compared.'],
    ['two hours', [hour('agrees'), hour('agrees', 'unclear')], 'agree in the 2 hours that were compared.'],
    ['only unclear ones', [hour('unclear')], 'in the 1 hour that was compared, but every difference is unclear.'],
    ['a drift', [hour('agrees', 'drifts')], 'DRIFT APART in 1 place: above 0 the engine worked more than was charged.'],
  ])('of %s says so', (_, rows, end) => {
    expect(comparison(rows).slice(-end.length)).toBe(end);
  });

  it('never says that they agree where nothing was compared, and says why not', () => {
    const text = comparison([hour('running'), hour('not_observed')]);
    expect(text).toMatch(/\n1 hour not observed: .*\n1 hour not over yet: .*\nNothing was compared\.$/);
    expect(comparison([])).toMatch(/^Nothing was compared: no engine was sampled in this time\./);
  });
});
