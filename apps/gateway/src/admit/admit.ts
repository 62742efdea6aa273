import type {
  AdmissionClient,
  AdmitRequest,
  ClientAdmitResult,
  HoldDeadline,
  Limits,
  LimitState,
  LookRequest,
  LookResult,
  Refusal,
} from '@tollgate/admission';
import type { UsageDraft } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import { ExactCounting } from '../prompt/exact-counting';
import { WaitingLines } from './waiting-line';

/** Output that a stream's hold covers at once, per choice; extended before it is used up. */
export const STREAM_SLICE_TOKENS = 1_024;
/** What a request without `max_tokens` is content with when running requests hold the rest. */
const LEAST_OPEN_OUTPUT_TOKENS = 256;
const MINUTE_MS = 60_000;
/** A longer prompt is not counted before it has to be: 1 ms. */
const MAX_EAGER_COUNT_BYTES = 16 * 1024;

export interface AdmissionAsk {
  draft: UsageDraft;
  model: CatalogModel;
  tenantLimits: Limits;
  keyLimits: Limits;
  tenantBudgetNanos: bigint | null;
  keyBudgetNanos: bigint | null;
  stream: boolean;
  /** 0 for embeddings. */
  choices: number;
  /** The client named it: less would be a shorter answer than it asked for. */
  maxTokensNamed: boolean;
  /** Upper bound of the prompt, and whether it is the exact count already. */
  prompt: { tokens: number; exact: boolean };
  /** Output per choice that model, context and client allow; more may be after `countExactly`. */
  maxTokensPerChoice: () => number;
  countExactly: () => number;
}

/** A request that may run. */
export interface Hold {
  id: string;
  tenantId: string;
  holdNanos: bigint;
  /** The prompt's bound, and its cost with the request's own price. */
  promptTokens: number;
  /** The bound was counted. */
  promptIsExact: boolean;
  promptFemtos: bigint;
  /** Output that the hold covers, over all choices. */
  outputTokens: number;
  /** The most that one choice may have in the end: for the backend's `max_tokens`. */
  maxTokensPerChoice: number;
  limits: LimitState;
  /** Of the store that granted it; goes with all that follows. */
  life: string | undefined;
  /** Past it nothing may be delivered. */
  deadline: HoldDeadline;
}

export type Admission =
  | { kind: 'held'; hold: Hold }
  | {
      kind: 'refused';
      reason: Exclude<Refusal, 'bound'>;
      scope: 'key' | 'tenant';
      retryAfterMs: number | null;
      limits: LimitState;
    };

/** Limits and hold for one request: by the cheap bound of its prompt first, by the exact count where that would refuse or clamp. */
export class Admitter {
  private readonly exactCounting = new ExactCounting();
  private readonly lines = new WaitingLines();

  constructor(private readonly client: AdmissionClient) {}

  /** Whether any request of this key would be admitted now. Rejects with UnavailableError when the store does not answer. */
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

  /** Rejects with UnavailableError when the store does not answer. */
  async admit(ask: AdmissionAsk, nowMs: number): Promise<Admission> {
    const { tenantId } = ask.draft;
    let prompt = ask.prompt;
    if (!prompt.exact && prompt.tokens <= MAX_EAGER_COUNT_BYTES && this.exactCounting.isDue(tenantId, nowMs)) {
      prompt = { tokens: ask.countExactly(), exact: true };
    }
    for (;;) {
      const request = toRequest(ask, prompt);
      const result = await this.client.admit(request);
      if (result.kind === 'held') return held(ask, prompt, request, result);
      if (SHORT_CREDIT.has(result.reason)) this.exactCounting.wasShort(tenantId, nowMs);
      if (prompt.exact || !isForExactCount(result.reason)) {
        const { promptTokens, wantOutputTokens } = request;
        const of = { ...ask, tenantId, keyId: ask.draft.keyId };
        return this.inLine(result, of, promptTokens + wantOutputTokens) as Admission;
      }
      prompt = { tokens: ask.countExactly(), exact: true };
    }
  }

  /**
   * Behind those that wait for the same limit.
   * @param tokens that each of them needs, as far as is known
   */
  private inLine<R extends Refused>(
    refused: R,
    { tenantId, keyId, tenantLimits, keyLimits }: Owner,
    tokens: number | null,
  ): R {
    const { reason, scope, retryAfterMs: exactMs } = refused;
    if (exactMs === null) return refused;
    const [owner, limits] = scope === 'key' ? [keyId, keyLimits] : [tenantId, tenantLimits];
    // Where running requests are in the way, the exact time is when the next of them is expected to end, and so on.
    let everyMs = exactMs;
    if (reason === 'requests') everyMs = MINUTE_MS / limits.requestsPerMinute;
    else if (reason === 'tokens' && tokens !== null) everyMs = (MINUTE_MS * tokens) / limits.tokensPerMinute;
    const retryAfterMs = this.lines.take({ line: `${reason} ${owner}`, exactMs, everyMs }, performance.now());
    return { ...refused, retryAfterMs };
  }
}

type Refused = Pick<Extract<ClientAdmitResult, { kind: 'refused' }>, 'reason' | 'scope' | 'retryAfterMs'>;
type Owner = Pick<LookRequest, 'tenantId' | 'keyId' | 'tenantLimits' | 'keyLimits'>;

function held(
  ask: AdmissionAsk,
  prompt: { tokens: number; exact: boolean },
  request: AdmitRequest,
  result: Extract<ClientAdmitResult, { kind: 'held' }>,
): Admission {
  const { draft, choices, stream, model } = ask;
  const outputTokens = result.outputTokens + otherChoices(ask);
  const hold: Hold = {
    id: draft.id,
    tenantId: draft.tenantId,
    holdNanos: result.holdNanos,
    promptTokens: prompt.tokens,
    promptIsExact: request.boundIsExact,
    promptFemtos: promptFemtos(prompt.tokens, model),
    outputTokens,
    maxTokensPerChoice: stream || choices === 0 ? ask.maxTokensPerChoice() : Math.floor(outputTokens / choices),
    limits: result.limits,
    life: result.life,
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

/** Refusals that a smaller bound of the prompt may avert. */
function isForExactCount(reason: Refusal): boolean {
  return reason === 'bound' || reason === 'tokens';
}

/** Choices beside the first. One token for each is needed like the prompt: without it there is no answer, and the store says what is short. */
function otherChoices({ choices }: AdmissionAsk): number {
  return Math.max(0, choices - 1);
}

function promptFemtos(tokens: number, model: CatalogModel): bigint {
  return BigInt(tokens) * model.promptFemtosPerToken + model.requestFemtos;
}

function toRequest(ask: AdmissionAsk, prompt: { tokens: number; exact: boolean }): AdmitRequest {
  const { model, choices, stream } = ask;
  const perChoice = choices === 0 ? 0 : ask.maxTokensPerChoice();
  const want = choices * (stream ? Math.min(perChoice, STREAM_SLICE_TOKENS) : perChoice);
  const least = ask.maxTokensNamed ? want : Math.min(want, Math.max(choices, LEAST_OPEN_OUTPUT_TOKENS));
  const others = otherChoices(ask);
  return {
    draft: ask.draft,
    tenantLimits: ask.tenantLimits,
    keyLimits: ask.keyLimits,
    keyBudgetNanos: ask.keyBudgetNanos,
    tenantBudgetNanos: ask.tenantBudgetNanos,
    promptTokens: prompt.tokens + others,
    promptFemtos: promptFemtos(prompt.tokens, model) + BigInt(others) * model.outputFemtosPerToken,
    outputFemtosPerToken: model.outputFemtosPerToken,
    wantOutputTokens: want - others,
    minOutputTokens: least - others,
    boundIsExact: prompt.exact,
  };
}
