import type { AdmissionClient } from '@tollgate/admission';
import { failPoint, logger } from '@tollgate/runtime';
import { ceilDiv, FEMTOS_PER_NANO, UnavailableError } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import { type Hold, STREAM_SLICE_TOKENS } from './admit';

/**
 * An extension is asked for before less than so much of a slice is left: at 100 tokens a second there are 2.5 s for the
 * answer.
 */
const ASK_LATEST_AT_SLICE_PART = 1 / 4;
/** … and as soon as a count finds that no more than this is left: so counts do not come ever closer to each other. */
const ASK_AT_SLICE_PART = 5 / 16;

/**
 * After a store that did not answer: four times in the quarter of a slice that a stream of 100 tokens a second has
 * left. An answer that got lost may have held another slice, until the request ends.
 */
const ASK_AGAIN_MS = 500;

/**
 * What a stream may still deliver under its hold. A chunk is taken for as many tokens as it has bytes, as no text has
 * more; where that could be so many that it is time to ask for more, the output is counted, some nine times a slice. So
 * the hold is extended while a quarter of the slice is left, whatever the text, and nobody waits unless the answer
 * takes longer than that quarter; when credit gives no more, the stream goes on to its last token.
 *
 * A backend that does not end at what it was asked for is ended there (`capped`). That is counted by the model's
 * tokenizer alone, without slack: where it is the backend's own tokenizer, a backend that keeps to what it was asked
 * for never gets there; by another one it may be cut, or go on, by as much as they differ.
 *
 * Credit that could not be asked is not spent: it is asked again, after a pause, and at the latest when what is held is
 * used up. The client waits for that last answer alone; without it what is held is all.
 *
 * States: open (more may be asked for) → asking → open | unanswered | closed (what is held is all) | lost; unanswered →
 * asking.
 */
export class StreamAllowance {
  onReady: () => void = () => {};
  private state: 'open' | 'asking' | 'unanswered' | 'closed' | 'lost' = 'open';
  /** Of the state `unanswered`; of performance.now(). */
  private askAgainAtMs = 0;
  /** What is held is used up, and an answer waited for. */
  private waits = false;
  /** Tokens delivered, at the most; exact after a count. */
  private most = 0;
  private covered: number;
  private readonly maxTokens: number;
  private readonly slice: number;

  constructor(
    private readonly client: AdmissionClient,
    private hold: Hold,
    private readonly model: CatalogModel,
    choices: number,
    private readonly countPrompt: () => number,
  ) {
    this.maxTokens = hold.maxTokensPerChoice * choices;
    this.slice = STREAM_SLICE_TOKENS * choices;
    this.covered = model.outputFemtosPerToken === 0n ? Infinity : hold.outputTokens;
  }

  /** Tokens of all the output that may be delivered, by what is held now. */
  get limit(): number {
    return Math.min(this.covered, this.maxTokens);
  }

  /** What is held by now. */
  get heldNanos(): bigint {
    return this.hold.holdNanos;
  }

  take(most: number, count: (limit: number) => number): 'granted' | 'wait' | 'capped' | 'ended' | 'lost' {
    if (this.state === 'lost') return 'lost';
    // All that the backend may generate is held: it ends by itself, or is ended.
    if (this.covered >= this.maxTokens) return this.takeHeld(most, count);
    if (this.state === 'unanswered' && performance.now() >= this.askAgainAtMs) this.ask();
    const uncountedUpTo = this.state === 'open' ? this.covered - this.slice * ASK_LATEST_AT_SLICE_PART : this.covered;
    if (this.most + most <= uncountedUpTo) {
      this.most += most;
      return 'granted';
    }
    const tokens = count(this.covered);
    if (this.state === 'open' && this.covered - tokens <= this.slice * ASK_AT_SLICE_PART) this.ask();
    if (tokens > this.covered) {
      if (this.state === 'unanswered') this.ask();
      this.waits = this.state === 'asking';
      return this.waits ? 'wait' : 'ended';
    }
    this.most = tokens;
    return 'granted';
  }

  private takeHeld(most: number, count: (limit: number) => number): 'granted' | 'capped' {
    const tokens = this.most + most <= this.maxTokens ? this.most + most : count(this.maxTokens);
    if (tokens > this.maxTokens) return 'capped';
    this.most = tokens;
    return 'granted';
  }

  /**
   * After the end: raises the hold to what the backend reports, as far as the credit goes, and never beyond what it was
   * asked for: the rest is an overrun. Returns what is held then.
   */
  async raiseTo(nanos: bigint): Promise<bigint> {
    const asked = this.hold.promptFemtos + BigInt(this.maxTokens) * this.model.outputFemtosPerToken;
    const most = ceilDiv(asked, FEMTOS_PER_NANO);
    const missing = (nanos < most ? nanos : most) - this.hold.holdNanos;
    if (missing > 0n && this.state !== 'closed' && this.state !== 'lost') await this.extend(missing, 1n);
    return this.hold.holdNanos;
  }

  private ask(): void {
    this.state = 'asking';
    const tokens = BigInt(Math.min(this.slice, this.maxTokens - this.covered));
    const nanos = (count: bigint) => ceilDiv(count * this.model.outputFemtosPerToken, FEMTOS_PER_NANO);
    void this.extend(nanos(tokens), nanos(1n)).then(() => this.onReady());
  }

  /** Asked again later, unless the client waits. */
  private notAnswered(): void {
    if (this.waits) return this.close();
    this.state = 'unanswered';
    this.askAgainAtMs = performance.now() + ASK_AGAIN_MS;
  }

  private async extend(wantNanos: bigint, minNanos: bigint): Promise<void> {
    const { id, tenantId, storeEpoch } = this.hold;
    try {
      const result = await this.client.extend({ id, tenantId, wantNanos, minNanos, storeEpoch });
      if (result.kind === 'extended') {
        failPoint('extended');
        this.hold = { ...this.hold, holdNanos: result.holdNanos };
        this.covered = this.tokensCovered();
        this.state = 'open';
      } else if (result.kind === 'refused') this.close();
      else this.state = 'lost';
    } catch (error) {
      // A fault of ours ends no stream either: it goes on under what is held. But it is no outage.
      if (!(error instanceof UnavailableError)) logger('gateway').error({ err: error, id }, 'a hold was not extended');
      this.notAnswered();
    }
    this.waits = false;
  }

  /**
   * What is held is all: a prompt that was held by its cheap bound is counted, so that the rest of it serves for
   * output.
   */
  private close(): void {
    this.state = 'closed';
    const promptFemtos = BigInt(this.countPrompt()) * this.model.promptFemtosPerToken + this.model.requestFemtos;
    this.hold = { ...this.hold, promptFemtos };
    this.covered = this.tokensCovered();
  }

  private tokensCovered(): number {
    const femtos = this.hold.holdNanos * FEMTOS_PER_NANO - this.hold.promptFemtos;
    return this.model.outputFemtosPerToken === 0n ? Infinity : Number(femtos / this.model.outputFemtosPerToken);
  }
}
