/** What a window needs beyond a match's end to know that the match is not longer: an apostrophe and two letters. */
const LOOK_AHEAD_CHARS = 4;

/**
 * Cuts a text into the pieces that byte pairs are merged in, as the encoding's pattern does on the whole text, a window
 * at a time: a pattern on a run of megabytes fills the stack of the regular expressions. A piece that fills its window
 * is cut (`isCut`); all others are exact, since the patterns look ahead only and what has come of a run at the window's
 * end is looked at again in the next.
 *
 * @param pattern matches at every place, and is global
 * @param visit false: no more
 */
export function forEachPiece(
  text: string,
  pattern: RegExp,
  windowChars: number,
  visit: (piece: string, isCut: boolean) => boolean,
): void {
  for (let from = 0; from < text.length;) {
    const isLast = text.length - from <= windowChars;
    const end = isLast ? text.length : wholeCharacters(text, from + windowChars);
    const window = from === 0 && isLast ? text : text.slice(from, end);
    // Blanks at the end may go on in the next window, and how they are divided depends on what follows them.
    const certain = isLast ? window.length : Math.min(window.length - LOOK_AHEAD_CHARS, window.trimEnd().length);
    let at = 0;
    while (at < window.length) {
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

/** No cut within a surrogate pair. */
function wholeCharacters(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
