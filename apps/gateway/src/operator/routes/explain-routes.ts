import { MAX_EXPLAINED, REFUSED_KEPT_DAYS } from '@tollgate/contracts';
import { ORIGINAL_ID_HEADER } from '../../http/request-id';
import type { RouteTable } from '../../openapi/route-table';
import type { OperatorEndpoint } from '../endpoint';
import { ExplainedKey, ExplainedRequests, ExplainQuery } from '../explain/explain-schemas';

/** The routes that answer complaints of customers. */
export const EXPLAIN_ROUTES: RouteTable<OperatorEndpoint> = {
  '/explain/requests/{name}': {
    get: {
      id: 'explainRequest',
      tag: 'Books',
      scope: 'read',
      summary: 'Show the whole life of a request',
      description:
        'Accepts the id of the request (`req_…`), of its answer (`chatcmpl-…`, `cmpl-…`), or the `x-request-id` that ' +
        `its caller chose, which may name several: the newest ${MAX_EXPLAINED} served and refused ones. Refused ` +
        `requests are kept for ${REFUSED_KEPT_DAYS} days, a sample if there are many. They arrive within about a ` +
        'second, in a flood within 10 s. A running request is found only by its own id and its tenant. It shows its ' +
        'key, its hold and what its last heartbeat recorded. The repeat of an `Idempotency-Key` has no record: ask ' +
        `for the request that its answer names in \`${ORIGINAL_ID_HEADER}\`. Nothing of their contents is stored.`,
      query: ExplainQuery,
      success: [['200', 'The requests.', ExplainedRequests]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
  '/explain/keys/{keyId}': {
    get: {
      id: 'explainKey',
      tag: 'Credentials',
      scope: 'read',
      summary: 'Show what a key may do now, and what blocks it',
      description:
        'Its status and that of its tenant, its models, limits, budgets and credit at this moment, and its newest ' +
        'refused requests. Takes nothing from its limits.',
      query: ExplainQuery,
      success: [['200', 'The key.', ExplainedKey]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
};
