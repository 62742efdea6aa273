import type { AdmissionClient } from '@tollgate/admission';
import { failPoint, logger } from '@tollgate/runtime';
import { ceilDiv, FEMTOS_PER_NANO, UnavailableError } from '@tollgate/contracts';
import { type HeldPrices, outputCovered, promptFemtos } from './held-prices';
import { type Hold, STREAM_SLICE_TOKENS } from './admit';
import { countHeld } from './held-metric';

/**
 * An extension is requested while at least this part of a slice is left: at 100 tokens a second, 2.5 s for the answer.
 */
const ASK_LATEST_AT_SLICE_PART = 1 / 4;
/** A count that finds at most this part left requests one too. Otherwise counts would become ever more frequent. */
const ASK_AT_SLICE_PART = 5 / 16;

/**
 * Retry interval after the store did not answer. A stream of 100 tokens a second retries four times in its last quarter
 * of a slice. A lost answer may have held another slice until the request ends.
 */
const ASK_AGAIN_MS = 500;

/**
 * The output that a stream may still deliver under its hold. A chunk counts as many tokens as it has bytes, because no
 * text has more. The output is counted exactly only when this bound reaches the point of an extension: some nine times
 * a slice. So the hold is extended while a quarter of the slice is left, whatever the text. The client waits only when
 * the answer takes longer than that quarter. When no credit is left, the stream goes on to the last token held.
 *
 * A backend that exceeds the `max_tokens` that were sent to it is cut there (`capped`). The model's tokenizer counts
 * this, without a margin. If it is the backend's own tokenizer, a backend that keeps its limit is never cut. With
 * another tokenizer the cut may be early or late by their difference.
 *
 * When the store does not answer, the extension is requested again after a pause, and at the latest when the hold is
 * used up. The client waits for that last answer only. Without it, the stream ends at what is held.
 *
 * States:
 * - open (may be extended) → asking
 * - asking → open | unanswered | closed (no further extension) | lost
 * - unanswered → asking
 */
export class StreamAllowance {
  onReady: () => void = () => {};
  private state: 'open' | 'asking' | 'unanswered' | 'closed' | 'lost' = 'open';
  /** In the state `unanswered`; by performance.now(). */
  private askAgainAtMs = 0;
  /** The hold is used up, and the stream waits for an answer. */
  private waits = false;
  /** How often the hold was extended for further output. */
  extensions = 0;
  /** Upper bound of the tokens delivered; exact after a count. */
  private most = 0;
  private covered: number;
  private maxTokens: number;
  private readonly slice: number;
  /** At first the prices of the hold, then the prices of the model that serves. */
  private prices: HeldPrices;
  /** The cost of the prompt's upper bound. */
  private promptFemtos: bigint;

  constructor(
    private readonly client: AdmissionClient,
    /** An extension replaces it, and so does a count of the prompt. */
    private hold: Hold,
    private readonly choices: number,
  ) {
    this.maxTokens = hold.maxTokensPerChoice * choices;
    this.slice = STREAM_SLICE_TOKENS * choices;
    this.prices = hold.prices;
    this.promptFemtos = promptFemtos(hold.prompt, hold.prices);
    this.covered = hold.prices.outputFemtosPerToken === 0n ? Infinity : hold.outputTokens;
  }

  /** Tokens that may be delivered in total under the present hold. */
  get limit(): number {
    return Math.min(this.covered, this.maxTokens);
  }

  get heldNanos(): bigint {
    return this.hold.holdNanos;
  }

  /** A fallback is asked for this much output. Called only while nothing has reached the client. */
  capAt(tokensPerChoice: number): void {
    this.maxTokens = tokensPerChoice * this.choices;
  }

  /** The model that serves is known, and the hold was computed at its prices or higher ones. */
  priceAs(prices: HeldPrices): void {
    this.prices = prices;
    this.priceAgain();
  }

  take(most: number, count: (limit: number) => number): 'granted' | 'wait' | 'capped' | 'ended' | 'lost' {
    if (this.state === 'lost') return 'lost';
    // The hold covers all that the backend may generate.
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
   * After the end: raises the hold to the cost that the backend reports, as far as the credit allows, and never beyond
   * the cost of the output asked for. The excess is an overrun. Returns the amount held afterwards.
   */
  async raiseTo(nanos: bigint): Promise<bigint> {
    const asked = this.promptFemtos + BigInt(this.maxTokens) * this.prices.outputFemtosPerToken;
    const most = ceilDiv(asked, FEMTOS_PER_NANO);
    const missing = (nanos < most ? nanos : most) - this.hold.holdNanos;
    if (missing > 0n && this.state !== 'closed' && this.state !== 'lost') await this.extend(missing, 1n);
    return this.hold.holdNanos;
  }

  private ask(): void {
    this.state = 'asking';
    const tokens = BigInt(Math.min(this.slice, this.maxTokens - this.covered));
    const nanos = (count: bigint) => ceilDiv(count * this.prices.outputFemtosPerToken, FEMTOS_PER_NANO);
    void this.extend(nanos(tokens), nanos(1n)).then(() => this.onReady());
  }

  /** Requests the extension again later, unless the client waits. */
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
        this.extensions += 1;
        countHeld(result.holdNanos - this.hold.holdNanos);
        this.hold = { ...this.hold, holdNanos: result.holdNanos };
        this.covered = this.tokensCovered();
        this.state = 'open';
      } else if (result.kind === 'refused') this.close();
      else this.state = 'lost';
    } catch (error) {
      // A bug does not end the stream either, but unlike an outage it is logged.
      if (!(error instanceof UnavailableError)) logger('gateway').error({ err: error, id }, 'a hold was not extended');
      this.notAnswered();
    }
    this.waits = false;
  }

  /**
   * No further extension. Counts the prompt if it was held by its cheap bound, so that the difference covers output.
   */
  private close(): void {
    this.state = 'closed';
    this.hold = { ...this.hold, prompt: this.hold.prompt.counted() };
    this.priceAgain();
  }

  private priceAgain(): void {
    this.promptFemtos = promptFemtos(this.hold.prompt, this.prices);
    this.covered = this.tokensCovered();
  }

  private tokensCovered(): number {
    return outputCovered(this.hold.holdNanos, this.promptFemtos, this.prices);
  }
}
