import { type AdmissionClient, type Claim, type ClaimAnswer, type RecallResult } from '@tollgate/admission';
import { logger } from '@tollgate/runtime';
import type { AnswerVault } from './answer-vault';
import { AnswerRecorder, decodeAnswer, encodeAnswer, type KeptAnswer } from './kept-answer';
import { answersNotKept, keyedRequests } from './metrics';

/** Larger than an answer that is kept, with its head. */
const HEAD_BYTES = 1_024;

/** The state of a request's Idempotency-Key, for this body. */
export type Repetition =
  /** The key is unused, or its earlier requests were not charged. */
  | { kind: 'first' }
  | { kind: 'running'; ageMs: number }
  | { kind: 'mismatch' }
  | { kind: 'kept'; answer: KeptAnswer }
  | { kind: 'not_kept' };

interface Keeping {
  readonly admission: AdmissionClient;
  readonly vault: AnswerVault;
  readonly maxAnswerBytes: number;
}

/**
 * A request with an Idempotency-Key, in order: `recall`, `repetition` with the body, and if it is the first, `claim`
 * for its admission, `recorder` for what its stream sends, and `keep` for its settlement.
 */
export class KeyedRequest {
  readonly recorder: AnswerRecorder;
  private recalled: RecallResult = { kind: 'free' };
  private fingerprint: string | null = null;

  constructor(
    private readonly parts: Keeping,
    private readonly tenantId: string,
    /** A hash over the inference key and the value of the header. */
    private readonly claimId: string,
  ) {
    this.recorder = new AnswerRecorder(parts.maxAnswerBytes);
  }

  /**
   * The bytes of the kept answer, which is in memory from now on; 0: there is none. Null: no request has the claim.
   * Rejects with UnavailableError.
   */
  async recall(): Promise<number | null> {
    const { tenantId, claimId } = this;
    const recalled = await this.parts.admission.recall({ tenantId, claimId });
    this.recalled = recalled;
    if (recalled.kind === 'free') return null;
    return recalled.kind === 'settled' ? (recalled.sealed?.length ?? 0) : 0;
  }

  /** @param what is asked for, beside the body */
  async repetition(what: string, body: Buffer): Promise<Repetition> {
    const found = await this.find(what, body);
    keyedRequests.inc({ result: found.kind });
    return found;
  }

  private async find(what: string, body: Buffer): Promise<Repetition> {
    const { recalled } = this;
    const { vault, maxAnswerBytes } = this.parts;
    if (recalled.kind === 'free') {
      this.fingerprint = await vault.fingerprint(what, body);
      return { kind: 'first' };
    }
    const isSame = await vault.matches(recalled.fingerprint, what, body);
    if (isSame === false) return { kind: 'mismatch' };
    if (recalled.kind === 'running') return { kind: 'running', ageMs: recalled.ageMs };
    const plain =
      recalled.sealed === null || isSame === null
        ? null
        : await vault.open(recalled.sealed, this.context, maxAnswerBytes + HEAD_BYTES);
    return plain === null ? { kind: 'not_kept' } : { kind: 'kept', answer: decodeAnswer(plain) };
  }

  /** For the admission of a first request. */
  get claim(): Claim {
    return { id: this.claimId, fingerprint: this.fingerprint! };
  }

  /**
   * The sealed answer, for the settlement. Never rejects: an answer that cannot be kept does not hinder its charge.
   * `end`: the bytes that the recorder has not got.
   */
  async keep({ end, ...of }: Omit<KeptAnswer, 'body'> & { end: string | Buffer }): Promise<ClaimAnswer> {
    const { claimId } = this;
    const body = this.recorder.withEnd(end);
    if (body === null) {
      answersNotKept.inc();
      return { claimId, sealed: null };
    }
    try {
      return { claimId, sealed: await this.parts.vault.seal(encodeAnswer({ ...of, body }), this.context) };
    } catch (error) {
      answersNotKept.inc();
      logger('gateway').error({ err: error, claimId }, 'an answer was not kept for repeats');
      return { claimId, sealed: null };
    }
  }

  private get context(): string {
    return `${this.tenantId} ${this.claimId}`;
  }
}
