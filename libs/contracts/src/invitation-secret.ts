import { hash, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

/**
 * The secret of a link that creates an account in the console: 43 characters that a URL may have. It exists in plain
 * text only in the link. Only its hash is sent and stored.
 */
export function mintInvitationSecret(): { secret: string; hash: string } {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { secret, hash: hashInvitationSecret(secret) };
}

/** SHA-256, 64 hex digits. */
export function hashInvitationSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}
