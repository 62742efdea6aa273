import { Type } from '@sinclair/typebox';
import { type BackendVerdict, MAX_COMPARED_HOURS } from '@tollgate/contracts';
import { nextCursor, timestamp } from '../http/account/fields';

/**
 * Question and answer of the comparison with the engines' own counters, for the check of the query and for the OpenAPI
 * document.
 */

const DEFAULT_HOURS = 24;
const VERDICTS: readonly BackendVerdict[] = ['agrees', 'unclear', 'drifts', 'not_observed', 'running'];
const exact = { additionalProperties: false };
const count = (description: string) => Type.Integer({ minimum: 0, description });

export const BackendHoursQuery = Type.Object({
  hours: Type.Integer({
    minimum: 1,
    maximum: MAX_COMPARED_HOURS,
    default: DEFAULT_HOURS,
    description: 'Number of hours before the current one.',
  }),
  before: Type.Optional(
    Type.String({
      format: 'iso8601',
      description: 'Returns hours before this one: the `nextCursor` of the previous page.',
    }),
  ),
});

export const BackendTokens = Type.Object(
  {
    engine: count('What the engine counted.'),
    booked: count('Of the requests that ended in the hour.'),
    least: count('The books explain at least so many.'),
    most: count('And at most so many, with requests that ran over an end of the hour.'),
    unbilled: count('In addition at most: work that nobody was charged for.'),
    drift: Type.Integer({
      description: 'The unexplained difference. Above 0 the engine did more work than the books have.',
    }),
    driftRatio: Type.Number({
      minimum: -1,
      maximum: 1,
      description: 'The difference as a fraction of the larger side.',
    }),
    verdict: Type.Unsafe<BackendVerdict>({
      type: 'string',
      enum: VERDICTS,
      description:
        '`unclear`: only with work that nobody was charged for. `drifts`: by more than 1 % and 1,000 tokens. `not_observed`: the engine was not sampled at both ends of the hour. `running`: not over for 15 minutes.',
    }),
  },
  { ...exact, $id: 'BackendTokens' },
);

export const BackendHours = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          engine: Type.String({ description: 'Its metrics page without the query, or `simulator:`.' }),
          backends: Type.Array(Type.String(), {
            description: 'The backends whose work it counts: origin and base path.',
          }),
          hour: timestamp('Its beginning.'),
          requests: count('Booked in the hour.'),
          estimatedRequests: count('Of them those whose tokens were counted by us.'),
          restarts: count('So often the engine began anew: what it had counted then is not known.'),
          prompt: BackendTokens,
          generation: BackendTokens,
        },
        exact,
      ),
      { description: 'Newest hour first.' },
    ),
    nextCursor,
  },
  { ...exact, $id: 'BackendHours' },
);
