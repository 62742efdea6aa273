import { type Author, type KeyRow, mintCredential, type RequestOf } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { bodyError, futureInstant, trimmedName } from './body';
import { KeyCreate } from './schemas';
import { bodyCheck } from '../validate';

export const KEY_NOTE = 'Store this key now: it is shown only this once.';

const checkBody = bodyCheck(KeyCreate, bodyError);

/** The fields of a new key that the caller chooses. */
type KeyFields = Omit<RequestOf<'auth.keys.create'>, 'tenantId' | 'hash' | 'last4' | 'by'>;

/**
 * Reads what to issue from a body: `name` trimmed, `expiresAt` in the future as ISO 8601 UTC. Errors: the errors of the
 * fields.
 */
export function readKeyBody(body: Record<string, unknown>): KeyFields {
  const { name, profile, expiresAt, owner, tags, models } = checkBody(trimmedName(body));
  const expires = futureInstant(expiresAt);
  return {
    name,
    ...(profile != null && { profile }),
    ...(expires !== null && { expiresAt: expires }),
    ...(owner !== undefined && { owner }),
    ...(tags !== undefined && { tags }),
    ...(models !== undefined && { models }),
  };
}

/**
 * Mints a key and has auth record its hash. The key itself exists only here and in the answer to the caller. Errors of
 * auth: not_found (tenant), invalid_profile, invalid_models.
 */
export async function issueKey(
  services: Requests,
  tenantId: string,
  wanted: KeyFields,
  by: Author,
): Promise<{ row: KeyRow; key: string }> {
  const { value, hash, last4 } = mintCredential('key');
  const row = await services.request('auth.keys.create', { tenantId, ...wanted, hash, last4, by });
  return { row, key: value };
}
