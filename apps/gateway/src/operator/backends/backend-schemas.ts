import { Type } from '@sinclair/typebox';
import { type BackendVerdict, MAX_BACKEND_NAME_CHARS, MAX_COMPARED_HOURS } from '@tollgate/contracts';
import { nextCursor, orNull, timestamp } from '../../http/account/fields';

/**
 * The query and the answer of the comparison with the counters of the engines. The query is validated with its schema,
 * and the OpenAPI document is generated from both.
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
    engine: count('Counted by the engine.'),
    booked: count('Tokens of the requests that ended in the hour.'),
    least: count('The least that the books explain.'),
    most: count('The most that the books explain, with requests that ran only partly in the hour.'),
    unbilled: count('The most that uncharged work adds to this.'),
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
        '`agrees`: the books explain the counts. `unclear`: only together with uncharged work. `drifts`: not by more ' +
        'than 1 % and 1,000 tokens. `not_observed`: the engine was not sampled at both ends of the hour. ' +
        '`running`: the hour ended less than 15 minutes ago, or not yet.',
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
          hour: timestamp('Start of the hour.'),
          requests: count('Requests booked in the hour.'),
          estimatedRequests: count('Requests among them whose tokens we counted.'),
          restarts: count('Restarts of the engine. Its counts right before a restart are unknown.'),
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

const name = Type.String({
  minLength: 1,
  maxLength: MAX_BACKEND_NAME_CHARS,
  description: 'Origin and base path of its URL, as in the list and in usage.',
});
const drainedAt = orNull(timestamp('When it was drained.'), 'Since when it gets no new calls. Null: it gets calls.');

export const BackendNamed = Type.Object({ backend: name }, { ...exact, $id: 'BackendNamed' });

export const BackendDrain = Type.Object(
  { data: Type.Object({ backend: name, drainedAt }, exact) },
  { ...exact, $id: 'BackendDrain' },
);

export const BackendList = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          backend: name,
          models: Type.Array(Type.Object({ id: Type.String(), weight: Type.Integer({ minimum: 0 }) }, exact), {
            description: 'The models of tollgate.yaml that have it, with its weight there.',
          }),
          drainedAt,
        },
        exact,
      ),
    ),
  },
  { ...exact, $id: 'BackendList' },
);
