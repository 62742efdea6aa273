import type { Progress } from '@tollgate/admission';
import {
  ceilDiv,
  costNanos,
  type FailedAttempt,
  FEMTOS_PER_NANO,
  type TokenCounts,
  type UsageDraft,
} from '@tollgate/contracts';
import type { Hold } from '../admit/admit';
import { promptFemtos } from '../admit/held-prices';
import type { Backend, CatalogModel } from '../catalog/catalog';
import type { TraceContext } from '../http/trace-context';
import { bytesToCount } from '../prompt/prompt-bound';
import type { PromptEstimate } from '../prompt/prompt-estimate';
import type { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { countTokens } from '../prompt/tokenizer';
import type { DeliveredText } from '../upstream/count/delivered-text';
import type { ReportedUsage } from '../upstream/wire/usage-field';
import type { AnswerDetails } from '../settle/usage-event';
import type { InferenceRequest } from '../body/inference-request';
import { upstreamBody } from '../body/outgoing';
import { noteDisbelief } from './backend-faults';
import { believes, isHidden, outputSpareTokens, promptSpareTokens } from './reported-usage';
import { KINDS } from './wire-names';

/** The model that serves a request, and what it is asked for. */
interface ServedBy {
  readonly model: CatalogModel;
  /** The draft with the name and the price of the model that serves. */
  readonly draft: UsageDraft;
  readonly maxTokensPerChoice: number;
}

/** What a request is settled at. */
export interface SettledUsage {
  tokens: TokenCounts;
  estimated: boolean;
  /** The details of the reported counts that were believed. */
  details: AnswerDetails;
}

/** The tokens of the delivered output. They are counted only if needed. */
export interface DeliveredOutput {
  /** Without counting. Null if an estimate would be unreliable. */
  estimate(): number | null;
  tokens(): number;
  /** The number of tool calls in it. */
  readonly calls: number;
  /** A part of it is reasoning. */
  readonly reasons: boolean;
}

/** What a backend delivered, and how it ended it. */
export interface BackendOutput {
  output: DeliveredOutput;
  /** The backend ended every choice that was asked for with `length`. */
  wentToLimit: boolean;
}

/** How a request was asked of backends. `AttemptRecord` is one. */
interface Asking {
  /** Names of the backends that may have begun it, in the order asked. If one serves it, it is the last. */
  readonly begun: readonly string[];
  /** The attempts that failed. Null: none did. */
  readonly failed: readonly FailedAttempt[] | null;
}

/** Before any backend was asked. */
const NOT_ASKED: Asking = { begun: [], failed: null };

/**
 * An admitted, running request, with all that the later stages need. While it runs, a fallback may come to serve it
 * (`servedBy`), backends are asked (`asks`), and our process may stop (`stopped`). All else stays as it was admitted.
 */
export class AdmittedRequest {
  /** By `performance.now()`. */
  readonly admittedAtMs = performance.now();
  private asking = NOT_ASKED;
  private wasStopped = false;
  private serving: ServedBy;
  /** Its answer in memory. */
  buffered: { release(): void } | null = null;

  constructor(
    readonly request: InferenceRequest,
    private readonly own: CatalogModel,
    draft: UsageDraft,
    readonly hold: Hold,
    /** The id that the client sees. The client may choose it and reuse it, unlike `draft.id`. */
    readonly requestId: string,
    private readonly trace: TraceContext | null = null,
  ) {
    this.serving = { model: own, draft, maxTokensPerChoice: hold.maxTokensPerChoice };
  }

  /** The model that serves: the one that was asked for, or a fallback. */
  get model(): CatalogModel {
    return this.serving.model;
  }

  /** The draft with the name and the price of the model that serves. */
  get draft(): UsageDraft {
    return this.serving.draft;
  }

  /** The output per choice that the serving model is asked for. Its answer ends there. */
  get maxTokensPerChoice(): number {
    return this.serving.maxTokensPerChoice;
  }

  /** The backends that may have begun it. */
  get begun(): readonly string[] {
    return this.asking.begun;
  }

  /**
   * From now on a fallback serves the request. It counts the prompt like the model that was asked for. It may have less
   * room for output than the hold.
   */
  servedBy(fallback: CatalogModel): void {
    const wanted = Math.min(this.hold.maxTokensPerChoice, fallback.maxOutputTokens);
    this.serving = {
      model: fallback,
      draft: { ...this.draft, model: fallback.id, price: fallback.price },
      maxTokensPerChoice: this.prompt.roomFor(wanted, fallback.contextTokens),
    };
  }

  /** From now on it is asked of backends. */
  asks(asking: Asking): void {
    this.asking = asking;
  }

  /** Our process is stopping and has ended the answer. */
  stopped(): void {
    this.wasStopped = true;
  }

  /** The body for a backend of the model that serves. */
  bodyFor(backend: Backend): Buffer {
    return upstreamBody(this.request, backend, this.maxTokensPerChoice);
  }

  /**
   * The part of what is held in the end that may be charged. The hold may be for a more expensive model, and for more
   * output than a fallback is asked for. Usage that a fallback reports beyond that is an overrun, as of a request for
   * it directly.
   */
  payable(heldNanos: bigint): bigint {
    if (this.asked === null) return heldNanos;
    const { model, hold, request } = this;
    const output = BigInt(this.maxTokensPerChoice * request.choices) * model.outputFemtosPerToken;
    const most = ceilDiv(promptFemtos(hold.prompt, model) + output, FEMTOS_PER_NANO);
    return most < heldNanos ? most : heldNanos;
  }

  /** The attempts that failed, in the order asked, and the end by our own process. Null: there are none. */
  get failed(): readonly FailedAttempt[] | null {
    const { failed } = this.asking;
    return this.wasStopped ? [...(failed ?? []), { why: 'stopped' }] : failed;
  }

  /** The model that it asked for, if a fallback serves it. Null: that model serves. */
  get asked(): string | null {
    return this.model === this.own ? null : this.own.id;
  }

  /** Fields of every log line of this request. */
  get logged(): { requestId: string; id: string; model: string; traceId?: string } {
    const { requestId, draft, model, trace } = this;
    return { requestId, id: draft.id, model: model.id, ...(trace && { traceId: trace.traceId }) };
  }

  /** Headers that each backend gets: our id, and the caller's trace. Names and values in turn. */
  get backendHeaders(): readonly string[] {
    return ['x-request-id', this.draft.id, ...(this.trace?.headers ?? [])];
  }

  /** The answer's identity for the client. Nothing in it comes from the backend. */
  get identity(): { id: string; object: string; createdSeconds: number; model: string } {
    const { idPrefix, object } = KINDS[this.request.kind];
    // The request id without `req_`.
    const id = idPrefix + this.draft.id.slice(4);
    return {
      id,
      object,
      createdSeconds: Math.floor(Date.parse(this.draft.startedAt) / 1_000),
      model: this.asked === null ? this.request.model : this.model.id,
    };
  }

  /** Counts a text's tokens with the model's tokenizer. */
  countText(text: string): number {
    return countTokens(this.model.tokenizer, text);
  }

  /** Our own count of the request. Counting a long prompt takes milliseconds and is done once. */
  count(completionTokens: number): TokenCounts {
    return this.ours(this.hold.prompt.counted().exactCount, completionTokens);
  }

  /** The prompt as it is known by now. What is held of it does not change. */
  private get prompt(): PromptEstimate {
    return this.hold.prompt.known();
  }

  /**
   * The token counts to settle. Each reported number is believed if it is plausible for what was sent and delivered.
   * Otherwise our own count replaces it. Nothing is counted if a reliable estimate already supports the report, as
   * counting costs 55 ns a byte.
   */
  settleAt(reported: ReportedUsage, { output, wentToLimit }: BackendOutput, backend: string): SettledUsage {
    const { request, model, hold } = this;
    const named = { ...this.logged, backend };
    if (reported === null || reported === 'unreadable') {
      const tokens = this.count(request.kind === 'embedding' ? 0 : output.tokens());
      if (reported !== null) noteDisbelief('form', named, { reported, own: tokens });
      return { tokens, estimated: true, details: {} };
    }
    const { promptDetails, completionDetails, ...tokens } = reported;
    const details: AnswerDetails = {};
    let estimated = false;
    const promptIsBelieved = believes(
      reported.promptTokens,
      {
        estimate: this.prompt.likely,
        exact: () => hold.prompt.counted().likely,
        spareAbove: promptSpareTokens(request.kind, request.messages),
        // This hold covers the prompt's bytes in any layout, and no prompt has more tokens than bytes.
        ...(hold.prompt.isExact ? {} : { bound: hold.prompt.upperBound }),
      },
      model,
    );
    if (!promptIsBelieved) {
      Object.assign(tokens, this.count(reported.completionTokens));
      estimated = true;
      noteDisbelief('prompt', named, { reported, own: { promptTokens: tokens.promptTokens } });
    } else details.prompt = promptDetails;
    if (request.kind === 'embedding') return { tokens: { ...tokens, completionTokens: 0 }, estimated, details };
    const range = (own: number) => ({ least: own, most: own });
    const rough = output.estimate();
    const estimate = rough === null ? null : range(rough);
    const exact = () => range(output.tokens());
    const { choices, longestStop } = request;
    const spareAbove = outputSpareTokens(output.calls, choices);
    if (!believes(reported.completionTokens, { estimate, exact, spareAbove }, model)) {
      const own = output.tokens();
      const [asked, ofStops] = [choices * this.maxTokensPerChoice, choices * this.countText(longestStop)];
      const seen = { asked, wentToLimit, ofStops, spareAbove, reasons: output.reasons };
      if (!isHidden(reported, own, seen, model.usageBand)) {
        noteDisbelief('completion', named, { reported, own: { completionTokens: own } });
        return { tokens: { ...tokens, completionTokens: own }, estimated: true, details };
      }
    }
    details.completion = completionDetails;
    return { tokens, estimated, details };
  }

  private ours(promptTokens: number, completionTokens: number): TokenCounts {
    return { promptTokens, cachedTokens: 0, completionTokens };
  }

  /** Counts what `record` needs and nobody has counted yet, if the throttle allows it in time. */
  async countForRecord(text: DeliveredText, chunks: number, throttle: TokenizerThrottle): Promise<void> {
    if (chunks === 0) return;
    const bytes = (this.prompt.isExact ? 0 : bytesToCount(this.request)) + text.uncountedBytes;
    if (bytes > 0 && !(await throttle.take(bytes))) return;
    this.hold.prompt.counted();
    text.tokens();
  }

  /**
   * The progress that a stream records once a second, in case the gateway dies. Uncounted text is estimated too low.
   * Null before any output. The cost may be above the hold: the settlement caps it, and the excess is the overrun.
   */
  record(text: DeliveredText, chunks: number): Progress['delivered'] {
    if (chunks === 0) return null;
    const tokens = this.ours(this.prompt.least, text.leastTokens());
    const { model, price } = this.draft;
    const served = this.asked === null ? undefined : { model, price };
    return { ...tokens, costNanos: costNanos(tokens, price), ...(served && { served }) };
  }
}
