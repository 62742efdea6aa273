import type { TokenCounts } from '@tollgate/contracts';
import { ChunkTemplates } from './chunk-templates';
import { fromWire, toStringBody, toWire } from './json-text';
import { outputText } from './output-text';
import { dataOf, FrameSplitter } from './sse-frames';
import { readUsage } from './usage-field';

/** What the client's chunks carry in place of the backend's. */
export interface Identity {
  id: string;
  object: 'chat.completion.chunk' | 'text_completion';
  createdSeconds: number;
  model: string;
  /** Usage as a chunk of its own; every other chunk then has `usage: null`. */
  includeUsage: boolean;
}

/** Text of one choice, as the body of a JSON string in UTF-8, one character a byte. */
export interface Piece {
  choice: number;
  text: string;
}

export type Frame =
  /** To be passed on; `pieces` is empty when it delivers nothing (a role). */
  | { kind: 'content'; out: string; pieces: readonly Piece[] }
  /** Has a finish_reason: held back until settled, or until another chunk follows. */
  | {
      kind: 'finish';
      chunk: Record<string, unknown>;
      pieces: readonly Piece[];
      finished: readonly number[];
      usage: TokenCounts | null;
    }
  | { kind: 'usage'; usage: TokenCounts }
  | { kind: 'done' }
  /** The backend reports an error, or sends what cannot be read. */
  | { kind: 'broken'; reason: string };

type Choice = Record<string, unknown> & { delta?: Record<string, unknown> };

/** The backend's stream of chunks → frames for the client, with nothing of the backend's identity in them. Pure: bytes in, frames out. */
export class ChunkTranslator {
  private readonly splitter = new FrameSplitter();
  private readonly templates = new ChunkTemplates();

  constructor(private readonly identity: Identity) {}

  push(latin1: string): void {
    this.splitter.push(latin1);
  }

  /** The next frame, or null when more bytes are needed. */
  next(): Frame | null {
    try {
      for (;;) {
        const event = this.splitter.next();
        if (event === null) return null;
        const known = this.templates.match(event);
        if (known) return { kind: 'content', out: known.out, pieces: [known] };
        const frame = this.parse(event);
        if (frame) return frame;
      }
    } catch (error) {
      return { kind: 'broken', reason: (error as Error).message };
    }
  }

  /** One event of ours. */
  encode(chunk: Record<string, unknown>, usage?: object): string {
    return `data: ${toWire(usage ? { ...chunk, usage } : chunk)}\n\n`;
  }

  /** A chunk of ours with these choices. */
  chunk(choices: unknown): Record<string, unknown> {
    const { id, object, createdSeconds, model, includeUsage } = this.identity;
    const chunk = { id, object, created: createdSeconds, model, choices };
    return includeUsage ? { ...chunk, usage: null } : chunk;
  }

  /** Null for what is neither passed on nor of any meaning. */
  private parse(event: string): Frame | null {
    const data = dataOf(event);
    if (data === null || data === '') return null;
    if (data.trim() === '[DONE]') return { kind: 'done' };
    const parsed = fromWire(data);
    if (typeof parsed !== 'object' || parsed === null) return { kind: 'broken', reason: 'a chunk is no object' };
    const source = parsed as Record<string, unknown>;
    if (source['error'] != null) return { kind: 'broken', reason: 'the backend reported an error' };
    const choices = source['choices'];
    if (!Array.isArray(choices)) return null;
    const usage = readUsage(source['usage']);
    if (choices.length === 0) return usage && { kind: 'usage', usage };
    const chunk = this.chunk(choices);
    const pieces = (choices as Choice[]).flatMap(piecesOf);
    const finished = (choices as Choice[]).filter((choice) => choice['finish_reason'] != null).map(indexOf);
    if (finished.length > 0) return { kind: 'finish', chunk, pieces, finished, usage };
    if (choices.length === 1 && pieces.length === 1 && isPlain(choices[0] as Choice) && source['usage'] == null) {
      this.templates.learn(event, source, (emptied) => this.chunk(emptied['choices']));
    }
    return { kind: 'content', out: this.encode(chunk), pieces };
  }
}

function indexOf(choice: Choice): number {
  return typeof choice['index'] === 'number' ? choice['index'] : 0;
}

function piecesOf(choice: Choice): Piece[] {
  const text = toStringBody(outputText(choice.delta ?? choice));
  return text === '' ? [] : [{ choice: indexOf(choice), text }];
}

/** Nothing in the choice but its text changes from chunk to chunk. */
function isPlain(choice: Choice): boolean {
  const holder = choice.delta ?? choice;
  const calls = holder['tool_calls'];
  return (
    choice['logprobs'] == null &&
    (calls == null || (Array.isArray(calls) && calls.length === 0)) &&
    holder['function_call'] == null
  );
}
