import { SCOPES } from '@tollgate/contracts';
import * as account from '../http/account/schemas';
import { MANAGEMENT_ERRORS, type ManagementErrorCode } from '../management/errors';
import { MANAGEMENT_ROUTES, type ManagementEndpoint } from '../management/routes';
import * as answers from '../management/schemas';
import { accountEnvelope, withEarlyAnswers } from './early-answers';
import { namedSchemas, refTo } from './open-api';
import { documented, type Surface } from './operation';
import { envelopeErrors } from './responses';

/** Every schema of the management API that has a name. */
export const MANAGEMENT_SCHEMAS = namedSchemas(account, answers);

/** Errors of every endpoint. */
const COMMON: ManagementErrorCode[] = [
  'invalid_request',
  'invalid_parameter',
  'missing_credential',
  'invalid_token',
  'token_expired',
  'token_revoked',
  'inference_key_not_accepted',
  'insufficient_scope',
  'rate_limited',
  'internal_error',
  'unavailable',
];

const MANAGEMENT_SURFACE: Surface<ManagementEndpoint> = {
  errors: envelopeErrors(MANAGEMENT_ERRORS, answers.ManagementErrorBody),
  common: COMMON,
  // Each endpoint lists its own errors, in the order of the checks.
  ofWrites: [],
  pathParameters: { id: 'Id of the key.' },
  // OpenAPI 3.1 allows scopes for any security scheme.
  security: ({ scope }) => [{ managementToken: [scope] }],
};

export const MANAGEMENT_EARLY = accountEnvelope('Management', refTo(answers.ManagementErrorBody));

export const MANAGEMENT_PATHS = withEarlyAnswers(documented(MANAGEMENT_ROUTES, MANAGEMENT_SURFACE), MANAGEMENT_EARLY);

export const MANAGEMENT_SECURITY = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'fma_…',
  description:
    'A management token. It belongs to one tenant and has scopes, which do not imply one another: ' +
    `${SCOPES.join(', ')}.`,
};
