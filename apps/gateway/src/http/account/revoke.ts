import { inForce, type Author } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';

/** Errors: not_found; unavailable while gateways may not know the revocation yet. */
export async function revokeCredential(
  services: Requests,
  kind: 'key' | 'token',
  credential: { tenantId: string; id: string; by: Author },
): Promise<void> {
  const subject = kind === 'key' ? 'auth.keys.revoke' : 'auth.tokens.revoke';
  const message = `The ${kind} may still be accepted. Repeat the revocation until it succeeds.`;
  await inForce(services.request(subject, credential), message);
}
