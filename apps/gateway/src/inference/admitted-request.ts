import type { Progress } from '@tollgate/admission';
import { costNanos, type InferenceKind, type TokenCounts, type UsageDraft } from '@tollgate/contracts';
import type { Hold } from '../admit/admit';
import type { CatalogModel } from '../catalog/catalog';
import { type CountedPrompt, PromptEstimate } from '../prompt/prompt-estimate';
import type { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { countTokens } from '../prompt/tokenizer';
import type { Identity } from '../upstream/chunk-translator';
import type { DeliveredText } from '../upstream/delivered-text';
import type { ReportedUsage } from '../upstream/usage-field';
import type { InferenceRequest } from './body/inference-request';
import { noteDisbelief } from './backend-faults';
import type { InferenceError } from './errors';
import type { Delivered } from '../settle/settlement';
import { believes, OUTPUT_SPARE_TOKENS, promptSpareTokens } from './reported-usage';

interface Wire {
  /** After the backend's base path. */
  path: string;
  idPrefix: string;
  object: string;
  chunkObject: Identity['object'];
}

const CHAT = { object: 'chat.completion', chunkObject: 'chat.completion.chunk' } as const;
const TEXT = { object: 'text_completion', chunkObject: 'text_completion' } as const;

/** What each kind is called on the wire. Embeddings have no id and are not streamed. */
export const KINDS: Record<InferenceKind, Wire> = {
  chat: { path: '/chat/completions', idPrefix: 'chatcmpl-', ...CHAT },
  completion: { path: '/completions', idPrefix: 'cmpl-', ...TEXT },
  embedding: { path: '/embeddings', idPrefix: '', ...TEXT, object: 'list' },
};

/** What became of a request at its backend. */
export type Served =
  /**
   * Something was delivered, or is about to be: to be settled, then `end` writes what is held back, with the usage that
   * was settled.
   */
  | (Delivered & {
      kind: 'delivered';
      /** By `performance.now()`; null for what is not streamed, and where nothing was. */
      firstTokenAtMs: number | null;
      end: (usage: Record<string, unknown>) => void;
    })
  /** Nothing was: the hold is void. `error` is what the client is told; null when it has gone. */
  | { kind: 'nothing'; error: InferenceError | null };

/** What was delivered, as far as it is counted: exactly only where it must be. */
export interface DeliveredOutput {
  /** Null where only a count can tell. */
  estimate(): number | null;
  tokens(): number;
}

/** A request that was admitted and now runs: what all later stages need of it. */
export class AdmittedRequest {
  /** As far as it is known by now. */
  private prompt: PromptEstimate;
  /**
   * Names of the backends that may have begun it, in the order asked (`Exchange.begun`): the last one serves it, if any
   * does.
   */
  begun: readonly string[] = [];

  constructor(
    readonly request: InferenceRequest,
    readonly model: CatalogModel,
    readonly draft: UsageDraft,
    readonly hold: Hold,
    /** As the client knows it; may be the client's own and come twice, unlike `draft.id`. */
    readonly requestId: string,
  ) {
    this.prompt = PromptEstimate.ofHold(request, model, hold);
  }

  /** For every log line of this request. */
  get logged(): { requestId: string; id: string; model: string } {
    return { requestId: this.requestId, id: this.draft.id, model: this.model.id };
  }

  /** What the client sees as the answer's id and time: ours. */
  get identity(): { id: string; object: string; createdSeconds: number; model: string } {
    const { idPrefix, object } = KINDS[this.request.kind];
    // The body of the request id, without `req_`.
    const id = idPrefix + this.draft.id.slice(4);
    return { id, object, createdSeconds: Math.floor(Date.parse(this.draft.startedAt) / 1_000), model: this.model.id };
  }

  /** Tokens of a text, by the model's tokenizer. */
  countText(text: string): number {
    return countTokens(this.model.tokenizer, text);
  }

  /** Our own count of the request, where the backend gives none. Takes milliseconds for a long prompt: once. */
  count(completionTokens: number): TokenCounts {
    return this.ours(this.countPrompt().exactCount, completionTokens);
  }

  private countPrompt(): CountedPrompt {
    const counted = this.prompt.counted();
    this.prompt = counted;
    return counted;
  }

  /**
   * What the request is settled at: what the backend reports, where it can be true by what was sent and delivered, else
   * our own count. Each of the two numbers by itself. A report that is likely by an estimate, where that is to be
   * trusted, is not counted after; all else costs 55 ns a byte.
   */
  settleAt(
    reported: ReportedUsage,
    output: DeliveredOutput,
    backend: string,
  ): { tokens: TokenCounts; estimated: boolean } {
    const { request, model, hold } = this;
    const named = { ...this.logged, backend };
    if (reported === null || reported === 'unreadable') {
      const tokens = this.ours(this.countPrompt().exactCount, request.kind === 'embedding' ? 0 : output.tokens());
      if (reported !== null) noteDisbelief('form', named, { reported, own: tokens });
      return { tokens, estimated: true };
    }
    const tokens = { ...reported };
    let estimated = false;
    const promptIsBelieved = believes(
      reported.promptTokens,
      {
        estimate: this.prompt.likely,
        exact: () => this.countPrompt().likely,
        spareAbove: promptSpareTokens(request.kind, request.messages),
        // By its bytes the hold has room for any prompt that these can be.
        ...(hold.promptIsExact ? {} : { bound: hold.promptTokens }),
      },
      model,
    );
    if (!promptIsBelieved) {
      Object.assign(tokens, this.ours(this.countPrompt().exactCount, reported.completionTokens));
      estimated = true;
      noteDisbelief('prompt', named, { reported, own: { promptTokens: tokens.promptTokens } });
    }
    if (request.kind === 'embedding') return { tokens: { ...tokens, completionTokens: 0 }, estimated };
    const range = (own: number) => ({ least: own, most: own });
    const estimate = output.estimate();
    const evidence = {
      estimate: estimate === null ? null : range(estimate),
      exact: () => range(output.tokens()),
      spareAbove: OUTPUT_SPARE_TOKENS,
    };
    if (believes(reported.completionTokens, evidence, model)) return { tokens, estimated };
    tokens.completionTokens = output.tokens();
    noteDisbelief('completion', named, { reported, own: { completionTokens: tokens.completionTokens } });
    return { tokens, estimated: true };
  }

  private ours(promptTokens: number, completionTokens: number): TokenCounts {
    return { promptTokens, cachedTokens: 0, completionTokens };
  }

  /** What the prompt can cost at most, counted. */
  boundOfPrompt(): number {
    return this.countPrompt().upperBound;
  }

  /** Counts what `record` tells and nobody has counted yet, as soon as the throttle lets it. */
  async countForRecord(text: DeliveredText, chunks: number, throttle: TokenizerThrottle): Promise<void> {
    if (chunks === 0) return;
    const bytes = (this.prompt.isExact ? 0 : this.request.outgoing.bytes) + text.uncountedBytes;
    if (bytes === 0 || !(await throttle.take(bytes))) return;
    this.countPrompt();
    text.tokens();
  }

  /**
   * What a running stream records, should the gateway die in the next second; of what is not counted, less than it was.
   * Null: nothing yet. The cost may be above the hold: whoever settles it caps it, and what is above is the overrun.
   */
  record(text: DeliveredText, chunks: number): Progress['delivered'] {
    if (chunks === 0) return null;
    const tokens = this.ours(this.prompt.least, text.leastTokens());
    return { ...tokens, costNanos: costNanos(tokens, this.draft.price) };
  }
}
