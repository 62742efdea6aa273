/** A backend that sends a longer event is broken. */
export const MAX_EVENT_BYTES = 8 * 1024 * 1024;

/**
 * Cuts a server-sent event stream into events, however its bytes were split on the way. Works on latin1 strings: each character is one byte of the UTF-8
 * stream, so that nothing is decoded that is only passed on.
 */
export class FrameSplitter {
  private text = '';
  private at = 0;
  private searched = 0;
  private endedWithReturn = false;

  push(latin1: string): void {
    if (latin1 === '') return;
    let more = latin1;
    if (this.endedWithReturn || more.includes('\r')) more = this.withPlainNewlines(more);
    this.text = this.at === this.text.length ? more : this.text.slice(this.at) + more;
    this.searched = Math.max(0, this.searched - this.at);
    this.at = 0;
  }

  /** The next whole event without the empty line that ends it, or null when there is none yet. Throws RangeError at an event above MAX_EVENT_BYTES. */
  next(): string | null {
    const end = this.text.indexOf('\n\n', this.searched);
    if (end === -1) {
      if (this.text.length - this.at > MAX_EVENT_BYTES) throw new RangeError('event too long');
      // The last character may be the first half of the end.
      this.searched = Math.max(this.at, this.text.length - 1);
      return null;
    }
    const frame = this.text.slice(this.at, end);
    this.at = end + 2;
    this.searched = this.at;
    return frame;
  }

  /** `\r\n` and `\r` end a line as `\n` does. */
  private withPlainNewlines(latin1: string): string {
    const rest = this.endedWithReturn && latin1.startsWith('\n') ? latin1.slice(1) : latin1;
    this.endedWithReturn = latin1.endsWith('\r');
    return rest.replace(/\r\n?/g, '\n');
  }
}

/** The `data` of an event: its data lines joined by newlines; null when it has none (a comment, a keep-alive). */
export function dataOf(frame: string): string | null {
  if (frame.startsWith('data: ') && !frame.includes('\n')) return frame.slice(6);
  let data: string | null = null;
  for (const line of frame.split('\n')) {
    if (!line.startsWith('data:')) continue;
    const value = line.slice(line.startsWith('data: ') ? 6 : 5);
    data = data === null ? value : `${data}\n${value}`;
  }
  return data;
}
