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
 * for its admission, `record` for what its stream sends, and `keep` for its settlement.
 */
export class KeyedRequest {
  private recorder: AnswerRecorder | null = null;
  private recalled: RecallResult = { kind: 'free' };
  private fingerprint: string | null = null;

  constructor(
    private readonly parts: Keeping,
    private readonly tenantId: string,
    /** A hash over the inference key and the value of the header. */
    private readonly claimId: string,
  ) {}

  /** Whether a request has the claim. A kept answer stays in the store. Rejects with UnavailableError. */
  async recall(): Promise<boolean> {
    const { tenantId, claimId } = this;
    this.recalled = await this.parts.admission.recall({ tenantId, claimId });
    return this.recalled.kind !== 'free';
  }

  /**
   * Only a request with the same body makes us read the answer. Rejects with UnavailableError, and with what `reserve`
   * throws.
   * @param what is asked for, beside the body
   * @param reserve called with the bytes of the kept answer: those in the store before it is read, then all of them
   */
  async repetition(what: string, body: Buffer, reserve: (bytes: number) => void): Promise<Repetition> {
    const found = await this.find(what, body, reserve);
    keyedRequests.inc({ result: found.kind });
    return found;
  }

  private async find(what: string, body: Buffer, reserve: (bytes: number) => void): Promise<Repetition> {
    const { recalled, tenantId, claimId } = this;
    const { admission, vault, maxAnswerBytes } = this.parts;
    if (recalled.kind === 'free') {
      this.fingerprint = await vault.fingerprint(what, body);
      return { kind: 'first' };
    }
    const isSame = await vault.matches(recalled.fingerprint, what, body);
    if (isSame === false) return { kind: 'mismatch' };
    if (recalled.kind === 'running') return { kind: 'running', ageMs: recalled.ageMs };
    const { fingerprint, answerChars } = recalled;
    if (answerChars === null || isSame === null) return { kind: 'not_kept' };
    reserve(answerChars);
    // Null: dropped for newer ones, or forgotten, while the body came.
    const sealed = await admission.answer({ tenantId, claimId, fingerprint, answerChars });
    const plain = sealed === null ? null : await vault.open(sealed, this.context, maxAnswerBytes + HEAD_BYTES);
    if (plain === null) return { kind: 'not_kept' };
    // The store has it compressed, a long one to a thousandth.
    reserve(plain.length);
    return { kind: 'kept', answer: decodeAnswer(plain) };
  }

  /** Of a first request. @param reserve as for AnswerRecorder */
  record(reserve: (bytes: number) => boolean): AnswerRecorder {
    return (this.recorder = new AnswerRecorder(this.parts.maxAnswerBytes, reserve));
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
    const body = this.recorder?.withEnd(end) ?? null;
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
