/**
 * A match that ends at least this far from the end of its window is final. The longest look-ahead is an apostrophe and
 * two letters.
 */
const LOOK_AHEAD_CHARS = 4;

/** Takes pieces itself, without the pattern. */
export interface Shortcut {
  /** Called before each window. */
  load(window: string): void;
  /**
   * Takes pieces from `at` on. Returns the end of the last one, which is at most `end`: `at` if there is none. -1 to
   * stop.
   */
  take(at: number, end: number): number;
}

const NO_SHORTCUT: Shortcut = { load: () => {}, take: (at) => at };

/**
 * Cuts a text into the pieces that byte pairs are merged in, as the pattern of the encoding does on the whole text. It
 * works window by window, because a pattern on a run of megabytes overflows the stack of the regular expressions. A
 * piece that fills its window is cut (`isCut`). All other pieces are exact: the patterns only look ahead, and a piece
 * at the end of a window is matched again in the next window.
 *
 * @param pattern matches at every position, and is global
 * @param visit returns false to stop
 */
export function forEachPiece(
  text: string,
  pattern: RegExp,
  windowChars: number,
  visit: (piece: string, isCut: boolean) => boolean,
  shortcut = NO_SHORTCUT,
): void {
  for (let from = 0; from < text.length;) {
    const isLast = text.length - from <= windowChars;
    const end = isLast ? text.length : wholeCharacters(text, from + windowChars);
    const window = from === 0 && isLast ? text : text.slice(from, end);
    // Blanks at the end may continue in the next window, and the text after them decides how they are divided.
    const certain = isLast ? window.length : Math.min(window.length - LOOK_AHEAD_CHARS, window.trimEnd().length);
    shortcut.load(window);
    let at = 0;
    while (at < window.length) {
      at = shortcut.take(at, certain);
      if (at === -1) return;
      if (at === window.length) break;
      pattern.lastIndex = at;
      pattern.test(window);
      const to = pattern.lastIndex;
      if (!isLast && (at >= certain || to > window.length - LOOK_AHEAD_CHARS)) break;
      if (!visit(window.slice(at, to), false)) return;
      at = to;
    }
    if (at === 0) {
      if (!visit(window, true)) return;
      at = window.length;
    }
    from += at;
  }
}

/** Moves a cut out of a surrogate pair. */
function wholeCharacters(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
