import type { InferenceRequest } from '../body/inference-request';
import { ALSO_IN_PROMPT, isRenderedByAll } from '../body/outgoing';
import {
  addedMargin,
  cheapBound,
  countPrompt,
  type CountingRules,
  leastPromptTokens,
  mediaTokens,
  refuseBeyondContext,
  refuseLongPrompt,
  templateRoom,
  textOf,
  type TextOfPart,
} from './prompt-bound';
import { OFTEN_LEFT_OUT, thoughtIn } from './thoughts';
import { Prose } from './token-estimate';

/** Our count of a prompt or an output. The two numbers differ when parts cannot be counted (images). */
export interface OwnCount {
  least: number;
  most: number;
}

/** A prompt that was counted. */
export type CountedPrompt = PromptEstimate & { readonly exactCount: number; readonly likely: OwnCount };

/**
 * The length of a prompt, in tokens, as far as it was known when the estimate was made. Its numbers never change: a
 * count makes a new estimate. The old one keeps it, so that nobody counts again, and `known` returns it to all that
 * have the old one. A count never exceeds the bound by bytes that it replaces, so the charge never exceeds the hold.
 */
export class PromptEstimate {
  /** Null: not counted since, or counted already. */
  private countedSince: CountedPrompt | null = null;

  private constructor(
    private readonly request: InferenceRequest,
    private readonly model: CountingRules & { id: string },
    /** What a hold covers: the bound by bytes, or the most that templates may make of the exact count. */
    readonly upperBound: number,
    /** Length of the longest part, which shares the context with the output of one choice. */
    readonly longest: number,
    /** The count of the tokenizer with compact JSON and no margin: what is charged. Null: not counted yet. */
    readonly exactCount: number | null,
    /** The part of `exactCount` that every engine shows the model. */
    private readonly exactLeast: number,
    /** The tokens by which the backend's own count of `longest` may be higher. */
    private readonly spare: number,
  ) {}

  /**
   * The estimate before admission: the bound by bytes. The exact count if it is known already, or if the bytes leave no
   * room for the output. Throws as `countedWithinContext` and `refuseBeyondContext` do.
   */
  static toHold(
    request: InferenceRequest,
    model: CountingRules & { id: string; clamp: boolean },
    outputTokens: number,
  ): PromptEstimate {
    const bound = cheapBound(request, model);
    const byBytes = new PromptEstimate(request, model, bound, bound, null, 0, 0);
    const needsCount = request.counted !== null || bound + outputTokens > model.contextTokens;
    if (!needsCount) return byBytes;
    const counted = byBytes.countedWithinContext();
    refuseBeyondContext(counted.longest, request, model);
    return counted;
  }

  get isExact(): boolean {
    return this.exactCount !== null;
  }

  /** What is known by now, without counting: the counted prompt, if it was counted since. */
  known(): PromptEstimate {
    return this.countedSince ?? this;
  }

  /** The counted prompt. Takes 55 ns a byte, once. */
  counted(): CountedPrompt {
    if (isCounted(this)) return this;
    return (this.countedSince ??= this.count());
  }

  private count(): CountedPrompt {
    const counts = countPrompt(this.request, this.model);
    const { request, model } = this;
    const { longest } = counts;
    const [least, total, most] = [counts.least, counts.total, counts.most].map((one) => Math.min(one, this.upperBound));
    const spare = templateRoom(request, counts);
    return new PromptEstimate(request, model, most!, longest, total!, least!, spare) as CountedPrompt;
  }

  /**
   * As `counted`. Throws InferenceError context_length_exceeded when the prompt leaves no room for one token of output.
   */
  countedWithinContext(): CountedPrompt {
    const counted = this.counted();
    refuseLongPrompt(counted.longest, this.request, this.model);
    return counted;
  }

  /**
   * Tokens of output per choice that fit into the context beside the prompt. A count may find more room. Output that
   * the client named is asked for if it fits by our count. What we ask for by ourselves leaves room for what the
   * backend may count more, but at least half of the rest of the context is asked for: vLLM, SGLang and TGI refuse a
   * request whose prompt and output exceed the context.
   * @param contextTokens of a fallback, which counts the prompt like its model
   */
  roomFor(outputTokens: number, contextTokens = this.model.contextTokens): number {
    const room = contextTokens - this.longest;
    if (this.request.maxTokensNamed && outputTokens <= room) return outputTokens;
    return Math.min(outputTokens, Math.max(room - this.spare, Math.ceil(room / 2)));
  }

  /** Lower bound of the prompt. Without a count, what is known from its form. */
  get least(): number {
    return this.exactCount ?? leastPromptTokens(this.request, this.model);
  }

  /**
   * The range that the report of a backend is compared with: from the count, or from an estimate that takes 4 ns a
   * byte. Null when the estimate is not reliable and the prompt must be counted.
   */
  get likely(): OwnCount | null {
    const media = mediaTokens(this.request, this.model);
    // At least, media may have no tokens at all. At most, there is what engines add: held and believed, never charged.
    if (this.exactCount !== null) return { least: Math.max(0, this.exactLeast - media), most: this.upperBound };
    const rough = roughly(this.request, this.request.body!, this.model);
    if (rough === null) return null;
    const { rewrittenTokens, jointTokens } = this.request.outgoing;
    const added = addedMargin(this.request) + rewrittenTokens + jointTokens;
    return { least: rough.least, most: rough.most + media + added };
  }
}

function isCounted(prompt: PromptEstimate): prompt is CountedPrompt {
  return prompt.isExact;
}

function roughly(
  { kind, messages, outgoing }: InferenceRequest,
  body: Record<string, unknown>,
  model: CountingRules,
): OwnCount | null {
  const prose = new Prose();
  const leftOut: unknown[] = [];
  const addFields = (byAll: boolean) => {
    for (const field of ALSO_IN_PROMPT) if (isRenderedByAll(field, body) === byAll) addValue(prose, body[field]);
  };
  addFields(true);
  if (kind !== 'chat') addPrompts(prose, kind === 'completion' ? body['prompt'] : body['input']);
  else {
    for (const message of body['messages'] as Record<string, unknown>[]) addMessage(prose, message, leftOut);
    prose.tokens += messages * model.templateTokensPerMessage + model.templateTokens;
  }
  const least = prose.tokens;
  addFields(false);
  for (const text of leftOut) addValue(prose, text);
  for (const { rendered, json } of outgoing.extras) if (rendered) addValue(prose, json);
  return prose.isTrusted ? { least, most: prose.tokens } : null;
}

/** @param leftOut gets the texts that not every template shows */
function addMessage(prose: Prose, message: Record<string, unknown>, leftOut: unknown[]): void {
  const thought = thoughtIn(message);
  if (thought !== '') leftOut.push(thought);
  for (const name in message) {
    const value = message[name];
    if (name === 'role') prose.tokens += 1;
    else if (OFTEN_LEFT_OUT.has(name)) leftOut.push(value);
    else if (name === 'content' && thought !== '') addValue(prose, (value as string).slice(thought.length));
    else if (name !== 'content' || !Array.isArray(value)) addValue(prose, value);
    else for (const part of value as TextOfPart[]) addValue(prose, textOf(part));
  }
}

function addValue(prose: Prose, value: unknown): void {
  if (value === null || value === undefined) return;
  prose.add(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
}

/** A string, a list of tokens, or a list of several of them. */
function addPrompts(prose: Prose, prompts: unknown): void {
  if (!Array.isArray(prompts)) return addValue(prose, prompts);
  for (const prompt of prompts as unknown[])
    if (typeof prompt === 'number') prose.tokens += 1;
    else if (Array.isArray(prompt)) prose.tokens += prompt.length;
    else addValue(prose, prompt);
}
