import type { EarlyRefusal } from '../accept/raw-answer';
import { envelopeOf } from '../http/envelope';
import { isManagement } from './surface-of';

/** The management API's envelope for its paths, the inference API's for all others, also if no path was read. */
export function earlyEnvelope({ status, message }: EarlyRefusal, url = ''): string {
  if (isManagement({ url })) return envelopeOf(status === 503 ? 'unavailable' : 'invalid_request', message);
  const type = status === 503 ? 'overloaded_error' : 'invalid_request_error';
  return JSON.stringify({ error: { message, type, param: null, code: status === 503 ? type : null } });
}
