/**
 * A longer event breaks the stream. The longest honest events have some hundred KB: a whole file in a tool call's
 * arguments, or the logprobs of many tokens. Events are parsed on the event loop at 10 ms a MiB, or 80 ms if every
 * member has a different name.
 */
export const MAX_EVENT_BYTES = 1024 * 1024;

const NEWLINE = 0x0a;
/** In UTF-8, one character a byte. Some servers begin an answer with it. It is no part of the first line. */
const BYTE_ORDER_MARK = '\xef\xbb\xbf';

export class EventTooLongError extends Error {
  constructor() {
    super(`an event is longer than ${MAX_EVENT_BYTES} bytes`);
  }
}

/**
 * Splits a server-sent event stream into events, regardless of how its bytes arrive. Works on latin1 strings, one
 * character per byte of the UTF-8 stream, so that bytes are passed on without decoding. Each byte is read once and
 * copied at most once: the parts of an event are joined when its end arrives.
 */
export class FrameSplitter {
  /** Unread chunks. Reading continues at `at` in the first one. */
  private unread: string[] = [];
  private at = 0;
  /** Parts of the unfinished event, with `bytes` bytes. */
  private parts: string[] = [];
  private bytes = 0;
  private endedWithNewline = false;
  private endedWithReturn = false;
  /** The first bytes, while they may be the beginning of a byte order mark. Null: the stream has begun. */
  private opening: string | null = '';

  push(latin1: string): void {
    const text = this.opening === null ? latin1 : this.withoutMark(this.opening + latin1);
    if (text === '') return;
    const more = this.endedWithReturn || text.includes('\r') ? this.withPlainNewlines(text) : text;
    if (more !== '') this.unread.push(more);
  }

  /**
   * The next complete event without its closing empty line, or null if more bytes are needed. Throws EventTooLongError
   * above MAX_EVENT_BYTES.
   */
  next(): string | null {
    for (let text = this.unread[0]; text !== undefined; text = this.unread[0]) {
      // The empty line may be split between two chunks.
      if (this.endedWithNewline && text.charCodeAt(this.at) === NEWLINE) {
        this.advance(text, this.at + 1);
        return this.event('').slice(0, -1);
      }
      const end = text.indexOf('\n\n', this.at);
      const part = this.at === 0 && end === -1 ? text : text.slice(this.at, end === -1 ? text.length : end);
      if (this.bytes + part.length > MAX_EVENT_BYTES) {
        this.parts = [];
        throw new EventTooLongError();
      }
      this.advance(text, end === -1 ? text.length : end + 2);
      if (end !== -1) return this.event(part);
      this.parts.push(part);
      this.bytes += part.length;
      this.endedWithNewline = part.charCodeAt(part.length - 1) === NEWLINE;
    }
    return null;
  }

  private advance(text: string, to: number): void {
    if (to < text.length) this.at = to;
    else {
      this.unread.shift();
      this.at = 0;
    }
  }

  private event(last: string): string {
    if (this.parts.length === 0) return last;
    this.parts.push(last);
    const event = this.parts.join('');
    this.parts = [];
    this.bytes = 0;
    this.endedWithNewline = false;
    return event;
  }

  /** The stream from its start, without a byte order mark. Empty while more bytes are needed to know. */
  private withoutMark(start: string): string {
    const isOpen = start.length < BYTE_ORDER_MARK.length && BYTE_ORDER_MARK.startsWith(start);
    this.opening = isOpen ? start : null;
    if (isOpen) return '';
    return start.startsWith(BYTE_ORDER_MARK) ? start.slice(BYTE_ORDER_MARK.length) : start;
  }

  /** Replaces the line ends `\r\n` and `\r` by `\n`. */
  private withPlainNewlines(latin1: string): string {
    const rest = this.endedWithReturn && latin1.startsWith('\n') ? latin1.slice(1) : latin1;
    this.endedWithReturn = latin1.endsWith('\r');
    return rest.replace(/\r\n?/g, '\n');
  }
}

/** The `data` of an event: its data lines joined by newlines; null when it has none (a comment, a keep-alive). */
export function dataOf(frame: string): string | null {
  if (frame.startsWith('data: ') && !frame.includes('\n')) return frame.slice(6);
  const data: string[] = [];
  for (const line of frame.split('\n')) {
    if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
  }
  return data.length === 0 ? null : data.join('\n');
}
