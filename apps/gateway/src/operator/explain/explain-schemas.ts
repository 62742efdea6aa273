import { Type, type TSchema } from '@sinclair/typebox';
import { MAX_EXPLAINED, REFUSED_BY, REFUSED_KEPT_DAYS } from '@tollgate/contracts';
import { orNull, timestamp } from '../../http/account/fields';
import { OperatorKey } from '../keys/key-schemas';
import { answer, currency, RecordedRequest, RequestTrail } from '../response-schemas';
import { CENTS, nanos, NAMED_ID } from '../schemas';
import { Tenant } from '../tenants/tenant-schemas';

const exact = { additionalProperties: false };
const whole = (description: string) => Type.Integer({ minimum: 0, description });
const oneOf = (values: readonly string[], description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description },
  );

export const ExplainQuery = Type.Object({ tenantId: Type.Optional(NAMED_ID.tenant) });

const failed = Type.Array(
  Type.Object(
    {
      backend: Type.Optional(Type.String({ description: 'Absent: a gateway that was stopping ended the answer.' })),
      why: oneOf(['refused', 'too_large', 'busy', 'timeout', 'stopped', 'failed'], 'Why it gave no whole answer.'),
      status: Type.Optional(whole('The HTTP status that it answered with.')),
      code: Type.Optional(Type.String({ description: 'The code of a failed connection.' })),
    },
    exact,
  ),
  { description: 'Attempts at backends that failed, in order.' },
);
const limitNumbers = (whose: string) =>
  Type.Array(Type.Integer({ minimum: 0 }), {
    minItems: 3,
    maxItems: 3,
    description: `Limits of the ${whose} at admission: requests per minute, tokens per minute, requests at once.`,
  });
export const RequestLife = Type.Object(
  {
    key: limitNumbers('key'),
    tenant: limitNumbers('tenant'),
    heldNanos: nanos('Held at its admission.'),
    endNanos: Type.Optional(nanos('Held at its end, if that differs.')),
    extensions: Type.Optional(whole('How often the hold was extended.')),
    firstMs: Type.Optional(whole('Milliseconds from its admission to its first output, of a stream.')),
    failed: Type.Optional(failed),
    asked: Type.Optional(Type.String({ description: 'The model that it asked for, if a fallback served it.' })),
    late: Type.Optional(
      Type.Literal(true, {
        description:
          'The admission store did not answer at its end: its stream ended with an error event after all of its ' +
          'text, and it was settled when the store was back.',
      }),
    ),
  },
  { ...exact, $id: 'RequestLife' },
);
export const ServedRequest = Type.Object(
  {
    ...RecordedRequest.properties,
    callerRequestId: orNull(Type.String(), 'The `x-request-id` that the caller chose. null: none.'),
    backend: orNull(Type.String(), 'The backend that served it. null: unknown.'),
    recordedAt: timestamp('When metering recorded it.'),
    life: orNull(RequestLife, 'null: its gateway died before it could tell, or was of an earlier version.'),
  },
  { ...exact, $id: 'ServedRequest' },
);

const byFields = {
  scope: Type.Optional(oneOf(['key', 'tenant'], 'Whose limit or budget.')),
  limit: Type.Optional(whole('The limit: requests or tokens per minute, or requests at once.')),
  remaining: Type.Optional(whole('What was left of it.')),
  needs: Type.Optional(whole('The tokens that the request needed: the bound of its prompt, and its output.')),
  until: Type.Optional(
    timestamp('From when on such a request would be admitted. Absent: unknown, or never by waiting.'),
  ),
};
export const RefusedRequest = Type.Object(
  {
    id: NAMED_ID.request,
    tenantId: NAMED_ID.tenant,
    keyId: NAMED_ID.key,
    callerRequestId: Type.Optional(Type.String()),
    at: timestamp('When it was answered.'),
    code: Type.String({
      description: 'The error code of its answer. `client_closed`: its client left before any output.',
    }),
    model: Type.Optional(
      Type.String({
        description: 'The model that it asked for, even if it does not exist. Absent: its body was not read.',
      }),
    ),
    param: Type.Optional(Type.String({ description: 'The parameter that was refused, as its answer named it.' })),
    by: Type.Optional(Type.Object({ what: oneOf(REFUSED_BY, 'What refused it.'), ...byFields }, exact)),
    heldNanos: Type.Optional(nanos('What was held until it failed. Absent: nothing.')),
    failed: Type.Optional(failed),
  },
  { ...exact, $id: 'RefusedRequest' },
);

const running = Type.Object(
  {
    keyId: NAMED_ID.key,
    model: Type.String({ description: 'The model that serves, once that is recorded; before, the one asked for.' }),
    kind: RecordedRequest.properties.kind,
    stream: Type.Boolean(),
    startedAt: timestamp('When it was admitted.'),
    callerRequestId: Type.Optional(Type.String()),
    delivered: orNull(
      Type.Object(
        {
          promptTokens: whole('Tokens of the prompt.'),
          cachedTokens: whole('A part of them.'),
          completionTokens: whole('Tokens of the output.'),
          costNanos: nanos('Their cost.'),
        },
        exact,
      ),
      'What the last heartbeat recorded of a stream. null: no output until then, or not a stream.',
    ),
  },
  { ...exact, description: 'Only while it is `pending`. Limits, failed attempts and backend are recorded at its end.' },
);

const { charge, carriedOn, entry, invoice, monthClosed } = RequestTrail.properties.data.properties;
export const ExplainedRequest = Type.Object(
  {
    id: NAMED_ID.request,
    tenantId: NAMED_ID.tenant,
    state: oneOf(['running', 'served', 'refused'], '`refused`: it has no usage, and cost nothing.'),
    callerRequestId: orNull(Type.String(), 'null: the caller chose none.'),
    key: orNull(
      Type.Object(
        {
          id: NAMED_ID.key,
          name: Type.String(),
          owner: orNull(Type.String(), 'null: nobody is named.'),
          tags: Type.Array(Type.String()),
          tenantName: Type.String(),
          externalId: orNull(Type.String(), 'Of the tenant. null: none.'),
        },
        exact,
      ),
      'What the key and its tenant are called now. null: unknown.',
    ),
    served: orNull(ServedRequest, 'null: it has no usage, or its usage event is no longer kept.'),
    refused: orNull(
      RefusedRequest,
      'Of a served request: the error that its client got, although it is charged. null: it was not refused, or that ' +
        'is not kept.',
    ),
    hold: orNull(
      Type.Object(
        {
          state: oneOf(['pending', 'settled'], '`pending`: it runs. `settled`: its cost is on its way to the ledger.'),
          nanos: nanos('Held, or the cost.'),
          quietMs: Type.Integer({ description: 'Milliseconds since its last heartbeat, or since its end.' }),
          running: Type.Optional(running),
        },
        exact,
      ),
      'In the admission store. null: there is none, or the store does not answer.',
    ),
    charge,
    carriedOn,
    entry,
    invoice,
    monthClosed,
  },
  { ...exact, $id: 'ExplainedRequest' },
);
export const ExplainedRequests = answer(
  Type.Object(
    {
      requests: Type.Array(ExplainedRequest, {
        minItems: 1,
        maxItems: 2 * MAX_EXPLAINED,
        description: `Newest first. Refused ones are kept for ${REFUSED_KEPT_DAYS} days, a sample if there are many.`,
      }),
      currency,
    },
    exact,
  ),
  'ExplainedRequests',
);

const remaining = {
  requestsPerMinute: whole('The limit.'),
  tokensPerMinute: whole('The limit.'),
  concurrency: whole('The limit of requests at once.'),
  requestsRemaining: Type.Optional(whole('Absent: the admission store does not answer.')),
  tokensRemaining: Type.Optional(whole('Absent: the admission store does not answer.')),
};
const budget = Type.Object(
  {
    monthlyBudgetCents: orNull(CENTS, 'null: none.'),
    setBy: oneOf(['operator', 'configuration'], 'Who set it.'),
    spentNanos: nanos('Spent in this month (UTC), as far as it has reached the books.'),
  },
  exact,
);
const admission = orNull(
  Type.Object(
    {
      settledNanos: nanos('Ended requests that the books do not have yet.'),
      heldNanos: nanos('Held by running requests.'),
      runningRequests: whole('Running requests of the tenant.'),
      spendableNanos: nanos('Left to spend.'),
      availableNanos: nanos('What a new request could hold now.'),
    },
    exact,
  ),
  'null: the admission store does not answer, or does not know the tenant.',
);
const inBooks: TSchema = Type.Object(
  { balanceCents: Type.Integer(), unpostedNanos: nanos('Not yet in the ledger.'), admission },
  exact,
);
export const ExplainedKey = answer(
  Type.Object(
    {
      key: Type.Object(
        {
          ...OperatorKey.properties,
          tenantId: NAMED_ID.tenant,
          revokedAt: orNull(timestamp('When it was revoked.'), 'null: not revoked.'),
        },
        exact,
      ),
      tenant: Type.Object(Tenant.properties, exact),
      admitted: orNull(
        Type.Boolean(),
        'Whether a small request would be admitted now. null: the admission store does not answer.',
      ),
      obstacles: Type.Array(
        Type.Object({ what: oneOf([...REFUSED_BY, 'no_models'], 'What stands in the way.'), ...byFields }, exact),
        { description: 'In the order in which a request meets them. Those of money do not stop free models.' },
      ),
      models: Type.Array(Type.String(), { description: 'The models that it may use.' }),
      limits: orNull(
        Type.Object({ key: Type.Object(remaining, exact), tenant: Type.Object(remaining, exact) }, exact),
        'null: the configuration has no such plan or profile.',
      ),
      budgets: Type.Object({ key: budget, tenant: budget }, exact),
      credit: inBooks,
      refused: Type.Array(RefusedRequest, {
        maxItems: MAX_EXPLAINED,
        description: 'Its newest refused requests that are kept.',
      }),
      currency,
    },
    exact,
  ),
  'ExplainedKey',
);
