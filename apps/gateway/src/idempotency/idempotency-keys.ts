import { createHash } from 'node:crypto';
import type { AdmissionClient } from '@tollgate/admission';
import { AnswerVault } from './answer-vault';
import { KeyedRequest } from './keyed-request';

export const MAX_KEY_CHARS = 255;
const KEY_FORM = new RegExp(`^[\\x20-\\x7e]{1,${MAX_KEY_CHARS}}$`);
export const DEFAULT_ANSWER_KIB = 1_024;

export interface IdempotencyOptions {
  /** The one in force, and former ones. */
  secrets: readonly string[];
  /** The largest answer that is kept. */
  maxAnswerBytes?: number;
}

/** The Idempotency-Keys of requests. Without secrets the header is ignored. */
export class IdempotencyKeys {
  private readonly vault: AnswerVault | null;
  private readonly maxAnswerBytes: number;

  constructor(
    private readonly admission: AdmissionClient,
    options: IdempotencyOptions | undefined,
  ) {
    this.vault = options ? new AnswerVault(options.secrets) : null;
    this.maxAnswerBytes = options?.maxAnswerBytes ?? DEFAULT_ANSWER_KIB * 1_024;
  }

  /** Null: the header is ignored. `malformed`: it is empty, too long, or has characters outside ASCII. */
  of(
    header: string,
    { tenantId, keyId, idempotency }: { tenantId: string; keyId: string; idempotency: boolean },
  ): KeyedRequest | 'malformed' | null {
    const { admission, vault, maxAnswerBytes } = this;
    if (!vault || !idempotency) return null;
    if (!KEY_FORM.test(header)) return 'malformed';
    // Each inference key has its own. The hash keeps what callers put into a key out of the store.
    const claimId = createHash('sha256').update(`${keyId}\n${header}`).digest('base64url');
    return new KeyedRequest({ admission, vault, maxAnswerBytes }, tenantId, claimId);
  }
}
