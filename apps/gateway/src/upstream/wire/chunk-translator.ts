import { ChunkTemplates, replaceText } from './chunk-templates';
import { fromWire, toStringBody, toWire } from './json-text';
import { outputOf, TEXT_FIELDS, withoutEmptyUnknown } from './output-text';
import { copiesIn } from './reasoning-copies';
import { saysError } from './reported-error';
import { dataOf, FrameSplitter } from './sse-frames';
import { readUsage, type ReportedUsage } from './usage-field';

/**
 * Marks are finish reasons, filter verdicts and indexes (output-text.ts). This many per choice are free in chunks
 * without text. After that each such chunk counts as one token, so that marks cannot carry free output without limit.
 */
const FREE_MARKS_PER_CHOICE = 64;

/** The members of the client's chunks that replace the backend's. */
export interface Identity {
  id: string;
  object: 'chat.completion.chunk' | 'text_completion';
  createdSeconds: number;
  model: string;
  /** The client wants usage as a separate last chunk. All other chunks then have `usage: null`. */
  includeUsage: boolean;
}

/** A chunk's output of one choice. */
export interface Piece {
  choice: number;
  /** The body of a JSON string in UTF-8, one character a byte. */
  text: string;
  /** The least number of tokens that it counts as. */
  least: number;
  /** The tool calls that begin in it. Absent: none. */
  calls?: number;
  /** A part of it is reasoning. */
  reasons?: boolean;
}

export type Frame =
  /**
   * A chunk to pass on. `pieces` is empty if it has no output, only a role for example. `field` is the one member with
   * all the text, or null.
   */
  | { kind: 'content'; out: string; pieces: readonly Piece[]; field: string | null; usage: ReportedUsage }
  /** A chunk with a finish_reason. It is withheld until the settlement, or until another chunk follows. */
  | {
      kind: 'finish';
      chunk: Record<string, unknown>;
      pieces: readonly Piece[];
      field: string | null;
      finished: readonly number[];
      /** These have the finish_reason `length`. */
      atLimit: boolean;
      usage: ReportedUsage;
    }
  | { kind: 'usage'; usage: ReportedUsage }
  | { kind: 'done' }
  /** The backend reported an error, or its stream cannot be read. */
  | { kind: 'broken'; reason: string };

type Choice = Record<string, unknown> & { delta?: Record<string, unknown> };

/**
 * Translates the backend's stream into frames for the client, without the backend's identity. No I/O: bytes in, frames
 * out.
 */
export class ChunkTranslator {
  private splitter = new FrameSplitter();
  private templates = new ChunkTemplates();
  private readonly marks = new Map<number, number>();

  /** @param choices the number requested: a choice with a higher index breaks the stream */
  constructor(
    private identity: Identity,
    private readonly choices: number,
  ) {}

  /** Forgets the stream so far: another backend begins it from the start. */
  restart(): void {
    this.splitter = new FrameSplitter();
    this.templates = new ChunkTemplates();
    this.marks.clear();
  }

  /** The name of the model in all chunks from now on. */
  rename(model: string): void {
    this.identity = { ...this.identity, model };
    this.restart();
  }

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
        if (known) return { kind: 'content', out: known.out, pieces: [known], field: known.field, usage: null };
        const frame = this.parse(event);
        if (frame) return frame;
      }
    } catch (error) {
      return { kind: 'broken', reason: (error as Error).message };
    }
  }

  /** A chunk as a server-sent event, with `usage` if given. */
  encode(chunk: Record<string, unknown>, usage?: object): string {
    return `data: ${toWire(usage ? { ...chunk, usage } : chunk)}\n\n`;
  }

  /** A chunk for the client with these choices. */
  chunk(choices: unknown): Record<string, unknown> {
    const { id, object, createdSeconds, model, includeUsage } = this.identity;
    const chunk = { id, object, created: createdSeconds, model, choices };
    return includeUsage ? { ...chunk, usage: null } : chunk;
  }

  /** Null for an event to ignore, such as a comment. */
  private parse(event: string): Frame | null {
    const data = dataOf(event);
    if (data === null || data === '') return null;
    if (data.trim() === '[DONE]') return { kind: 'done' };
    const parsed = fromWire(data);
    if (typeof parsed !== 'object' || parsed === null) return { kind: 'broken', reason: 'a chunk is not an object' };
    const source = parsed as Record<string, unknown>;
    if (saysError(source['error'])) return { kind: 'broken', reason: 'the backend reported an error' };
    // Some engines report usage in a chunk without choices.
    const choices = source['choices'] ?? [];
    if (!Array.isArray(choices)) return null;
    // Moonshot reports it in the last choice. Of several choices, that could be the usage of one.
    const ofChoice = this.choices === 1 ? (choices[0] as Choice | null | undefined)?.['usage'] : null;
    const usage = readUsage(source['usage'] ?? ofChoice);
    if (choices.length === 0) return usage && { kind: 'usage', usage };
    const why = this.validateChoices(choices);
    if (why !== null) return { kind: 'broken', reason: why };
    const lean = (choices as Choice[]).map(leanChoice);
    const chunk = this.chunk(lean);
    const pieces = lean.flatMap((choice) => this.pieceOf(choice));
    const field = lean.length === 1 && pieces.length === 1 ? fieldOf(lean[0]!, pieces[0]!) : null;
    const ended = lean.filter(isFinished);
    if (ended.length > 0) {
      const atLimit = ended.every((choice) => choice['finish_reason'] === 'length');
      return { kind: 'finish', chunk, pieces, field, finished: ended.map(indexOf), atLimit, usage };
    }
    if (field !== null && source['usage'] == null) {
      this.templates.learn(event, source, field, (emptied) =>
        this.chunk((emptied['choices'] as Choice[]).map(leanChoice)),
      );
    }
    return { kind: 'content', out: this.encode(chunk), pieces, field, usage };
  }

  /**
   * The frame as an event with `text` instead of its own text, and without its finish_reason. Null if the frame has no
   * single text field.
   */
  replaceText(frame: Extract<Frame, { kind: 'content' | 'finish' }>, text: string): string | null {
    if (frame.field === null) return null;
    if (frame.kind === 'content') return replaceText(frame.out, frame.field, text);
    const open = (frame.chunk['choices'] as Choice[]).map((choice) => ({ ...choice, finish_reason: null }));
    return replaceText(this.encode({ ...frame.chunk, choices: open }), frame.field, text);
  }

  private pieceOf(source: Choice): Piece[] {
    const { text, least, marks, calls, reasons } = outputOf(source);
    const choice = indexOf(source);
    if (least > 0) return [{ choice, text: text === '' ? '' : toStringBody(text), least, calls, reasons }];
    const used = (this.marks.get(choice) ?? 0) + marks;
    this.marks.set(choice, used);
    return marks > 0 && used > FREE_MARKS_PER_CHOICE ? [{ choice, text: '', least: 1 }] : [];
  }

  private validateChoices(choices: readonly unknown[]): string | null {
    for (const choice of choices) {
      if (typeof choice !== 'object' || choice === null || Array.isArray(choice)) return 'a choice is not an object';
      const index = (choice as Choice)['index'] ?? 0;
      if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= this.choices)
        return 'a choice has an index that was not requested';
    }
    return null;
  }
}

/**
 * The choice for the client. Perplexity sends all of the answer so far as `message` beside each delta, and Moonshot
 * sends usage.
 */
function leanChoice(choice: Choice): Choice {
  const lean: Choice = withoutEmptyUnknown(choice);
  const isLeftOut = (name: string) => name === 'usage' || (name === 'message' && Boolean(lean.delta));
  if (!Object.keys(lean).some(isLeftOut)) return lean;
  return Object.fromEntries(Object.entries(lean).filter(([name]) => !isLeftOut(name)));
}

/** Some engines send an empty finish_reason with each chunk. */
function isFinished({ finish_reason: reason }: Choice): boolean {
  return typeof reason === 'string' && reason !== '';
}

function indexOf(choice: Choice): number {
  return typeof choice['index'] === 'number' ? choice['index'] : 0;
}

/** The one text field with all output of the choice, or null. A text that is there twice has no single field. */
function fieldOf(choice: Choice, { text, least }: Piece): string | null {
  if (least !== 1 || text === '') return null;
  const holder = choice.delta ?? choice;
  if (copiesIn(holder) !== null || (choice.delta && choice['text'])) return null;
  const field = [...TEXT_FIELDS].find((name) => typeof holder[name] === 'string' && holder[name] !== '');
  return field !== undefined && toStringBody(holder[field] as string) === text && choice['logprobs'] == null
    ? field
    : null;
}
