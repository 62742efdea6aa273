import type { EarlyRefusal } from '../accept/raw-answer';
import { envelopeOf } from '../http/envelope';
import { EARLY_CODES, INFERENCE_ERRORS } from '../inference-errors';
import { isManagement } from './url-prefix';

/** The management API's envelope for its paths, the inference API's for all others, also if no path was read. */
export function earlyEnvelope({ status, message }: EarlyRefusal, url = ''): string {
  if (isManagement({ url })) return envelopeOf(status === 503 ? 'unavailable' : 'invalid_request', message);
  const code = EARLY_CODES[status] ?? null;
  const type = code === null ? 'invalid_request_error' : INFERENCE_ERRORS[code].type;
  return JSON.stringify({ error: { message, type, param: null, code } });
}
