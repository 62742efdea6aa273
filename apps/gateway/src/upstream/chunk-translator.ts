import { ChunkTemplates, withText } from './chunk-templates';
import { fromWire, toStringBody, toWire } from './json-text';
import { outputOf, TEXT_FIELDS, withoutHollow } from './output-text';
import { dataOf, FrameSplitter } from './sse-frames';
import { readUsage, type ReportedUsage } from './usage-field';

/**
 * Of a choice, over its whole stream: ends, verdicts, places in chunks that deliver nothing else. Then such a chunk is
 * a token.
 */
const FREE_MARKS = 64;

/** What the client's chunks carry in place of the backend's. */
export interface Identity {
  id: string;
  object: 'chat.completion.chunk' | 'text_completion';
  createdSeconds: number;
  model: string;
  /** Usage as a chunk of its own; every other chunk then has `usage: null`. */
  includeUsage: boolean;
}

/**
 * What a chunk delivers of one choice: its text as the body of a JSON string in UTF-8, one character a byte, and so
 * many tokens at the least.
 */
export interface Piece {
  choice: number;
  text: string;
  least: number;
}

export type Frame =
  /**
   * To be passed on; `pieces` is empty when it delivers nothing (a role). `field`: the one that has all its text, null
   * when there is no such one.
   */
  | { kind: 'content'; out: string; pieces: readonly Piece[]; field: string | null }
  /** Has a finish_reason: held back until settled, or until another chunk follows. */
  | {
      kind: 'finish';
      chunk: Record<string, unknown>;
      pieces: readonly Piece[];
      field: string | null;
      finished: readonly number[];
      usage: ReportedUsage;
    }
  | { kind: 'usage'; usage: ReportedUsage }
  | { kind: 'done' }
  /** The backend reports an error, or sends what cannot be read. */
  | { kind: 'broken'; reason: string };

type Choice = Record<string, unknown> & { delta?: Record<string, unknown> };

/**
 * The backend's stream of chunks → frames for the client, with nothing of the backend's identity in them. Pure: bytes
 * in, frames out.
 */
export class ChunkTranslator {
  private readonly splitter = new FrameSplitter();
  private readonly templates = new ChunkTemplates();
  private readonly marks = new Map<number, number>();

  /** @param choices that were asked for: one with another index is nobody's */
  constructor(
    private readonly identity: Identity,
    private readonly choices: number,
  ) {}

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
        if (known) return { kind: 'content', out: known.out, pieces: [known], field: known.field };
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
    const why = this.validateChoices(choices);
    if (why !== null) return { kind: 'broken', reason: why };
    const lean = (choices as Choice[]).map(withoutHollow) as Choice[];
    const chunk = this.chunk(lean);
    const pieces = lean.flatMap((choice) => this.pieceOf(choice));
    const field = lean.length === 1 && pieces.length === 1 ? fieldOf(lean[0]!, pieces[0]!) : null;
    const finished = lean.filter((choice) => choice['finish_reason'] != null).map(indexOf);
    if (finished.length > 0) return { kind: 'finish', chunk, pieces, field, finished, usage };
    if (field !== null && source['usage'] == null) {
      this.templates.learn(event, source, field, (emptied) =>
        this.chunk((emptied['choices'] as Choice[]).map(withoutHollow)),
      );
    }
    return { kind: 'content', out: this.encode(chunk), pieces, field };
  }

  /**
   * The frame's chunk with another text in the place of its own and no end; null where it has more than one plain text.
   */
  withText(frame: Extract<Frame, { kind: 'content' | 'finish' }>, text: string): string | null {
    if (frame.field === null) return null;
    if (frame.kind === 'content') return withText(frame.out, frame.field, text);
    const open = (frame.chunk['choices'] as Choice[]).map((choice) => ({ ...choice, finish_reason: null }));
    return withText(this.encode({ ...frame.chunk, choices: open }), frame.field, text);
  }

  private pieceOf(source: Choice): Piece[] {
    const { text, least, marks } = outputOf(source);
    const choice = indexOf(source);
    if (least > 0) return [{ choice, text: text === '' ? '' : toStringBody(text), least }];
    const used = (this.marks.get(choice) ?? 0) + marks;
    this.marks.set(choice, used);
    return marks > 0 && used > FREE_MARKS ? [{ choice, text: '', least: 1 }] : [];
  }

  private validateChoices(choices: readonly unknown[]): string | null {
    for (const choice of choices) {
      if (typeof choice !== 'object' || choice === null || Array.isArray(choice)) return 'a choice is no object';
      const index = (choice as Choice)['index'] ?? 0;
      if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= this.choices)
        return 'a choice that nobody asked for';
    }
    return null;
  }
}

function indexOf(choice: Choice): number {
  return typeof choice['index'] === 'number' ? choice['index'] : 0;
}

/** The one plain field that has all that the choice delivers. */
function fieldOf(choice: Choice, { text, least }: Piece): string | null {
  if (least !== 1 || text === '') return null;
  const holder = choice.delta ?? choice;
  const field = [...TEXT_FIELDS].find((name) => typeof holder[name] === 'string' && holder[name] !== '');
  return field !== undefined && toStringBody(holder[field] as string) === text && choice['logprobs'] == null
    ? field
    : null;
}
