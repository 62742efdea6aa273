import { OPERATOR_SCOPES } from '@tollgate/contracts';
import * as management from '../http/account/schemas';
import * as access from '../operator/access/access-schemas';
import type { OperatorEndpoint } from '../operator/endpoint';
import * as audit from '../operator/access/audit-schemas';
import * as backends from '../operator/backends/backend-schemas';
import * as config from '../operator/backends/config-schemas';
import * as lives from '../operator/explain/explain-schemas';
import * as keys from '../operator/keys/key-schemas';
import * as repairs from '../operator/tenants/repair-schemas';
import * as answers from '../operator/response-schemas';
import { OPERATOR_ERRORS } from '../operator/errors';
import { OPERATOR_ROUTES } from '../operator/routes';
import * as requests from '../operator/schemas';
import * as tenants from '../operator/tenants/tenant-schemas';
import { UsageCsv, UsageNdjson } from '../operator/usage/usage-export-schemas';
import * as usage from '../operator/usage/usage-schemas';
import { HEADERS, INFO } from './document';
import { accountEnvelope, earlyResponses, withEarlyAnswers } from './early-answers';
import { type JsonObject, namedSchemas, refTo, schemaComponents, usedHeaders } from './open-api';
import { documented, type Surface } from './operation';
import { envelopeErrors } from './responses';
import { yamlOf } from './yaml';

const DESCRIPTION = `\
Operates Tollgate: tenants, prepaid credit, budgets, credentials, invoices and reconciliation. It has its own port and
needs the operator secret, or an operator token with the scope of the operation. The \`tollgate\` command covers all
of it.

- Times are ISO 8601 UTC with milliseconds.
- Money is integer cents. Amounts that need more precision are nanos in decimal strings.
- Every answer has an \`x-request-id\`.
- An unknown path is 404. A known path with another method is 405 with \`Allow\`.
- A top-up, refund or adjustment may be repeated with the same \`ref\`. It is entered once.

The same port serves \`/metrics\`, \`/livez\`, \`/readyz\` and this document without the secret.`;

const COMMON: (keyof typeof OPERATOR_ERRORS)[] = [
  'invalid_request',
  'invalid_parameter',
  'missing_credential',
  'invalid_secret',
  'token_revoked',
  'token_expired',
  'insufficient_scope',
  'misdirected_request',
  'too_many_attempts',
  'internal_error',
  'unavailable',
];

const OPERATOR_SURFACE: Surface<OperatorEndpoint> = {
  errors: envelopeErrors(OPERATOR_ERRORS, answers.OperatorError),
  common: COMMON,
  ofWrites: ['invalid_json', 'unknown_field', 'payload_too_large', 'unsupported_media_type'],
  pathParameters: {
    tenantId: 'Id of the tenant.',
    id: 'Id of the key, the token, the operator token or the reconcile run.',
    entryId: 'Id of a ledger entry.',
    requestId: 'Id of an inference request: its `x-tollgate-request-id`.',
    keyId: 'Id of an inference key.',
    name: 'Id of a request, of its answer, or the `x-request-id` that its caller chose.',
    accountingNumber: 'Number of the invoice.',
  },
  security: ({ scope }) => [{ operatorSecret: [] }, { operatorToken: [scope] }],
};

const EARLY = accountEnvelope('Operator', refTo(answers.OperatorError));

const { KeyCreate, Token, TokenList, Invoice } = management;

/**
 * The OpenAPI 3.1 document of the operator API, generated from the schemas that validate requests and the table of
 * errors.
 */
export function operatorDocument(): JsonObject {
  const paths = withEarlyAnswers(documented(OPERATOR_ROUTES, OPERATOR_SURFACE), EARLY);
  const responses = earlyResponses(EARLY);
  return {
    openapi: '3.1.0',
    info: { ...INFO, title: 'Tollgate operator API', description: DESCRIPTION },
    servers: [{ url: '/', description: 'This port.' }],
    tags: [
      { name: 'Tenants', description: 'Customers.' },
      { name: 'Credit', description: 'Top-ups, refunds and adjustments.' },
      { name: 'Budgets', description: 'Spending limits for a calendar month (UTC).' },
      { name: 'Credentials', description: 'Inference keys and management tokens.' },
      { name: 'Access', description: 'Operators, operator tokens, the configuration and the audit log.' },
      { name: 'Books', description: 'Usage, invoices and reconciliation.' },
      { name: 'Backends', description: "The models' backends: which of them get calls." },
    ],
    paths,
    components: {
      securitySchemes: {
        operatorSecret: {
          type: 'http',
          scheme: 'bearer',
          description: '`TOLLGATE_OPERATOR_SECRET`. It may do everything.',
        },
        operatorToken: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'tgo_…',
          description: `A named token with scopes, which do not imply one another: ${OPERATOR_SCOPES.join(', ')}.`,
        },
      },
      headers: usedHeaders(HEADERS, paths, responses),
      responses,
      schemas: schemaComponents([
        ...namedSchemas({ KeyCreate, Token, TokenList, Invoice }),
        ...namedSchemas(access, audit, config, keys, answers, backends, lives, repairs, requests, tenants, usage),
        ...namedSchemas({ UsageCsv, UsageNdjson }),
      ]),
    },
  };
}

export const operatorYaml = yamlOf(operatorDocument);
