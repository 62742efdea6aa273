import { Injectable } from '@nestjs/common';
import {
  AdmissionClient,
  type AdmitRequest,
  type Claim,
  type ClientAdmitResult,
  type HoldDeadline,
  type Limits,
  type LimitState,
  type LookRequest,
  type LookResult,
  type Refusal,
} from '@tollgate/admission';
import type { UsageDraft } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import { ExactCounting } from '../prompt/exact-counting';
import type { PromptEstimate } from '../prompt/prompt-estimate';
import { highestPrices, hasMoreExpensive, type HeldPrices, promptFemtos, withoutMoreExpensive } from './held-prices';
import { ExpectedEnds } from './expected-ends';
import { countHeld } from './held-metric';
import { WaitingLines } from './waiting-line';

/** Output per choice that the hold of a stream covers at a time. It is extended before it is used up. */
export const STREAM_SLICE_TOKENS = 1_024;
/** The least output that a request without `max_tokens` accepts when other requests' holds limit its own. */
const LEAST_OPEN_OUTPUT_TOKENS = 256;
const MINUTE_MS = 60_000;
/** A prompt with a higher bound is counted only when necessary. Counting up to this one takes 1 ms, with tools 2 ms. */
const MAX_EAGER_BOUND_TOKENS = 16 * 1024;

/** The output that a request asks for. */
export interface WantedOutput {
  /** 0 for embeddings. */
  readonly choices: number;
  /** What the model and the client allow. The context may have less room. */
  readonly tokensPerChoice: number;
  /** The client named the limit. Other requests' holds never shorten its answer; only short credit or a budget does. */
  readonly isNamed: boolean;
}

/** A request that asks for admission: its owner, and what it can cost. */
export interface Candidate {
  readonly draft: UsageDraft;
  readonly model: CatalogModel;
  /** Models that may serve it instead, and count its prompt alike. The hold covers them too. */
  readonly fallbacks: readonly CatalogModel[];
  readonly tenantLimits: Limits;
  readonly keyLimits: Limits;
  readonly tenantBudgetNanos: bigint | null;
  readonly keyBudgetNanos: bigint | null;
  readonly prompt: PromptEstimate;
  readonly output: WantedOutput;
  /** The claim of its Idempotency-Key, if it has one. */
  readonly claim?: Claim | undefined;
}

/** The hold of an admitted request. An extension makes a new one. */
export interface Hold {
  readonly id: string;
  readonly tenantId: string;
  readonly holdNanos: bigint;
  /** The prompt as it is held: its upper bound. */
  readonly prompt: PromptEstimate;
  /** Models that may serve the request instead of its own. */
  readonly fallbacks: readonly CatalogModel[];
  /** The highest prices of the models that may serve the request. */
  readonly prices: HeldPrices;
  /** Output that the hold covers, over all choices. */
  readonly outputTokens: number;
  /** The most tokens that one choice may have in the end: the `max_tokens` of the backend. */
  readonly maxTokensPerChoice: number;
  readonly limits: LimitState;
  /** The limits under which the request was admitted, not their state. */
  readonly admittedUnder: { readonly keyLimits: Limits; readonly tenantLimits: Limits };
  /** The epoch of the store that granted the hold. Every later call on the hold repeats it. */
  readonly storeEpoch: string | undefined;
  /** Nothing may be delivered after this time. */
  readonly deadline: HoldDeadline;
}

export type Admission =
  | { kind: 'held'; hold: Hold }
  | {
      kind: 'refused';
      reason: Exclude<Refusal, 'bound'>;
      scope: 'key' | 'tenant';
      retryAfterMs: number | null;
      limits: LimitState;
      /** The tokens that the request needed: the bound of its prompt, and its output. */
      needs: number;
    };

/**
 * Checks the limits and holds credit for one request. Uses the cheap bound of the prompt first, and the exact count
 * when that bound would refuse or clamp the request.
 */
@Injectable()
export class Admitter {
  private readonly exactCounting = new ExactCounting();
  private readonly lines = new WaitingLines();

  constructor(
    private readonly client: AdmissionClient,
    private readonly ends: ExpectedEnds,
  ) {}

  /**
   * Whether any request of this key would be admitted now. Rejects with UnavailableError when the store does not
   * answer.
   */
  async look(of: Omit<LookRequest, 'isPaid'>, isPaid: boolean): Promise<LookResult> {
    const { tenantId, keyId, tenantLimits, keyLimits, tenantBudgetNanos, keyBudgetNanos } = of;
    const result = await this.client.look({
      tenantId,
      keyId,
      tenantLimits,
      keyLimits,
      tenantBudgetNanos,
      keyBudgetNanos,
      isPaid,
    });
    return result.kind === 'refused' ? this.inLine(result, of, null) : result;
  }

  /**
   * Rejects with UnavailableError when the store does not answer, and with InferenceError context_length_exceeded when
   * a counted prompt leaves no room for output. If the credit does not pay for more expensive fallbacks beside
   * the counted prompt, the request is held without them.
   */
  async admit(asked: Candidate, nowMs: number): Promise<Admission> {
    const { tenantId, keyId } = asked.draft;
    let candidate = asked;
    let { prompt } = candidate;
    if (!prompt.isExact && prompt.upperBound <= MAX_EAGER_BOUND_TOKENS && this.exactCounting.isDue(tenantId, nowMs)) {
      prompt = prompt.countedWithinContext();
    }
    for (;;) {
      const request = toRequest(candidate, prompt);
      const result = await this.client.admit(request);
      if (result.kind === 'held') return held(candidate, prompt, result);
      const isShort = SHORT_CREDIT.has(result.reason);
      if (isShort) this.exactCounting.wasShort(tenantId, nowMs);
      const { model, fallbacks } = candidate;
      // The count comes first: it may show that the credit pays for the more expensive ones.
      if (!prompt.isExact && isForExactCount(result.reason)) prompt = prompt.countedWithinContext();
      else if (isShort && hasMoreExpensive(model, fallbacks))
        candidate = { ...candidate, fallbacks: withoutMoreExpensive(model, fallbacks) };
      else {
        const { promptTokens, wantOutputTokens } = request;
        const of = { ...candidate, tenantId, keyId };
        const needs = promptTokens + wantOutputTokens;
        return { ...(await this.inLine(result, of, needs)), needs } as Admission;
      }
    }
  }

  /**
   * Gives a refused request a place behind the others that wait for the same limit.
   * @param tokens that each of them needs; null: unknown
   */
  private async inLine<R extends Refused>(
    refused: R,
    { tenantId, keyId, tenantLimits, keyLimits }: Owner,
    tokens: number | null,
  ): Promise<R> {
    const { reason, scope, retryAfterMs } = refused;
    if (retryAfterMs === null) return refused;
    const [owner, limits] = scope === 'key' ? [keyId, keyLimits] : [tenantId, tenantLimits];
    // For limits of running requests: the store's expected time between two ends of running requests.
    let everyMs = retryAfterMs;
    let exactMs = retryAfterMs;
    if (OF_RUNNING.has(reason)) {
      const of = { tenantId, keyId: scope === 'key' ? keyId : null };
      exactMs = (await this.ends.soonestMs(of, performance.now())) ?? exactMs;
    }
    if (reason === 'requests') everyMs = MINUTE_MS / limits.requestsPerMinute;
    else if (reason === 'tokens' && tokens !== null) everyMs = (MINUTE_MS * tokens) / limits.tokensPerMinute;
    const waitMs = this.lines.take({ line: `${reason} ${owner}`, exactMs, everyMs }, performance.now());
    return { ...refused, retryAfterMs: waitMs };
  }
}

type Refused = Pick<Extract<ClientAdmitResult, { kind: 'refused' }>, 'reason' | 'scope' | 'retryAfterMs'>;
type Owner = Pick<LookRequest, 'tenantId' | 'keyId' | 'tenantLimits' | 'keyLimits'>;

function held(
  { draft, model, fallbacks, output, keyLimits, tenantLimits }: Candidate,
  prompt: PromptEstimate,
  result: Extract<ClientAdmitResult, { kind: 'held' }>,
): Admission {
  countHeld(result.holdNanos);
  const { choices } = output;
  const others = otherChoices(output);
  const isWhole = !draft.stream && choices > 0;
  const outputTokens = result.outputTokens + others;
  const hold: Hold = {
    id: draft.id,
    tenantId: draft.tenantId,
    holdNanos: result.holdNanos,
    prompt,
    fallbacks,
    prices: highestPrices([model, ...fallbacks]),
    outputTokens,
    maxTokensPerChoice: isWhole ? Math.floor(outputTokens / choices) : prompt.roomFor(output.tokensPerChoice),
    limits: result.limits,
    admittedUnder: { keyLimits, tenantLimits },
    storeEpoch: result.storeEpoch,
    deadline: result.deadline,
  };
  return { kind: 'held', hold };
}

const SHORT_CREDIT: ReadonlySet<Refusal> = new Set([
  'bound',
  'budget_reached',
  'credit_exhausted',
  'credit_held',
] as const);

/** Refusals that the end of a running request may cure. */
const OF_RUNNING: ReadonlySet<Refusal> = new Set(['concurrency', 'credit_held'] as const);

/** Refusals that a smaller bound of the prompt may avert. */
function isForExactCount(reason: Refusal): boolean {
  return reason === 'bound' || reason === 'tokens';
}

/**
 * Choices beside the first. Each needs at least one token. That token is added to the prompt, because without it there
 * is no answer and the request must be refused.
 */
function otherChoices({ choices }: WantedOutput): number {
  return Math.max(0, choices - 1);
}

function toRequest(candidate: Candidate, prompt: PromptEstimate): AdmitRequest {
  const { draft, model, fallbacks, output } = candidate;
  const { choices } = output;
  const prices = highestPrices([model, ...fallbacks]);
  const perChoice = choices === 0 ? 0 : prompt.roomFor(output.tokensPerChoice);
  const want = choices * (draft.stream ? Math.min(perChoice, STREAM_SLICE_TOKENS) : perChoice);
  const least = output.isNamed ? want : Math.min(want, Math.max(choices, LEAST_OPEN_OUTPUT_TOKENS));
  const others = otherChoices(output);
  return {
    draft,
    tenantLimits: candidate.tenantLimits,
    keyLimits: candidate.keyLimits,
    keyBudgetNanos: candidate.keyBudgetNanos,
    tenantBudgetNanos: candidate.tenantBudgetNanos,
    promptTokens: prompt.upperBound + others,
    promptFemtos: promptFemtos(prompt, prices) + BigInt(others) * prices.outputFemtosPerToken,
    outputFemtosPerToken: prices.outputFemtosPerToken,
    wantOutputTokens: want - others,
    minOutputTokens: least - others,
    // Drop the fallback rather than hold all credit for part of its price.
    boundIsExact: prompt.isExact && !hasMoreExpensive(model, fallbacks),
    ...(candidate.claim && { claim: candidate.claim }),
  };
}
