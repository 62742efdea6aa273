import { MAX_JSON_BODY_BYTES } from '../json-body';
import type { ErrorTable } from '@tollgate/runtime';

/** The errors that the management and the operator API share. */
export const ACCOUNT_ERRORS = {
  /** For input that is not an HTTP request. A slow one gets 408, a head that is too large 431, an Expect header 417. */
  invalid_request: { status: 400, message: 'The request is not valid HTTP.' },
  invalid_json: { status: 400, message: 'The body is not a JSON object.' },
  unknown_field: { status: 400, message: 'The body has a field that this endpoint does not know.' },
  name_required: { status: 400, message: 'name is required.' },
  invalid_name: {
    status: 400,
    message:
      'name must be a string of 1 to 100 characters. At least one must be visible. ' +
      'Control and bidirectional formatting characters are not allowed.',
  },
  invalid_profile: { status: 400, message: "profile must name a key profile of the tenant's plan." },
  invalid_expires_at: { status: 400, message: 'expiresAt must be an ISO 8601 timestamp in the future.' },
  invalid_owner: { status: 400, message: 'owner must be a string of 1 to 100 characters without surrounding space.' },
  invalid_tags: {
    status: 400,
    message: 'tags must be a list of at most 16 distinct words of 1 to 64 characters from A-Z, a-z, 0-9 and "._:/-".',
  },
  invalid_models: {
    status: 400,
    message: 'models must be null, or a list of 1 to 100 distinct ids of models.',
  },
  invalid_parameter: { status: 400, message: 'A query parameter is not valid.' },
  not_found: { status: 404, message: 'Not found.' },
  method_not_allowed: {
    status: 405,
    message: 'This endpoint does not support this method. The Allow header lists the supported ones.',
  },
  payload_too_large: {
    status: 413,
    message: `The body is larger than ${MAX_JSON_BODY_BYTES / 1024} KiB. Send a smaller one.`,
  },
  unsupported_media_type: { status: 415, message: 'The body must be JSON. Send "Content-Type: application/json".' },
  internal_error: {
    status: 500,
    message:
      'The service failed to process the request. Try again. If it fails again, give the operator the x-request-id ' +
      'of the answer.',
  },
  unavailable: {
    status: 503,
    message: 'The service cannot answer at the moment. Try again shortly.',
    retryAfterSeconds: 1,
  },
} as const satisfies ErrorTable;
