import { isDeepStrictEqual } from 'node:util';
import { endOfString, fromWire, isStringBody, toWire } from './json-text';

/** A stream alternates between few forms of chunk: one for each choice, and for content and reasoning. */
const MAX_TEMPLATES = 16;
/**
 * A backend whose chunks never repeat a form (a changing `created`, say) is parsed chunk by chunk, without trying to
 * learn for ever.
 */
const MAX_LESSONS = 64;

interface Template {
  prefix: string;
  suffix: string;
  ourPrefix: string;
  ourSuffix: string;
  choice: number;
  field: string;
}

/** A text chunk of a known form. */
export interface MatchedChunk {
  /** The event as the client gets it. */
  out: string;
  choice: number;
  /** The text as the body of a JSON string: all that the chunk delivers. */
  text: string;
  least: 1;
  field: string;
}

/**
 * What surrounds the text in the chunks of one stream is constant: id, model, time, choice. It is learned from a chunk
 * that was parsed; later chunks of the same form are rewritten by swapping these bytes, without parsing (0.5 µs instead
 * of 10). A chunk that does not fit is not matched, never guessed at.
 */
export class ChunkTemplates {
  private readonly templates: Template[] = [];
  private lessons = 0;

  match(frame: string): MatchedChunk | null {
    for (const { prefix, suffix, ourPrefix, ourSuffix, choice, field } of this.templates) {
      const end = frame.length - suffix.length;
      if (end <= prefix.length || !frame.startsWith(prefix) || !frame.endsWith(suffix)) continue;
      const text = frame.slice(prefix.length, end);
      if (isStringBody(text)) return { out: ourPrefix + text + ourSuffix, choice, text, least: 1, field };
    }
    return null;
  }

  /**
   * Learns from a chunk with one choice, one text and nothing else that could change.
   * @param parsed the frame's data, parsed
   * @param field of the choice's delta, or of the choice: has all that the chunk delivers
   * @param rewrite what the client is to get for a parsed chunk
   */
  learn(
    frame: string,
    parsed: Record<string, unknown>,
    field: string,
    rewrite: (chunk: Record<string, unknown>) => Record<string, unknown>,
  ): void {
    if (this.lessons >= MAX_LESSONS || this.templates.length >= MAX_TEMPLATES || !frame.startsWith('data: ')) return;
    this.lessons += 1;
    const choice = (parsed['choices'] as Record<string, unknown>[])[0]!;
    const cut = cutAtText(frame, field);
    if (!cut) return;
    // Proof that the place is right: with the text taken out there, it is the same chunk with an empty text.
    const emptied = structuredClone(parsed);
    const emptiedChoice = (emptied['choices'] as Record<string, unknown>[])[0]!;
    ((emptiedChoice['delta'] ?? emptiedChoice) as Record<string, unknown>)[field] = '';
    if (!isDeepStrictEqual(tryParse(cut.prefix.slice('data: '.length) + cut.suffix), emptied)) return;
    const ours = cutAtText(`data: ${toWire(rewrite(emptied))}\n\n`, field);
    if (!ours) return;
    this.templates.unshift({
      prefix: flat(cut.prefix),
      suffix: flat(cut.suffix),
      ourPrefix: flat(ours.prefix),
      ourSuffix: flat(ours.suffix),
      choice: Number(choice['index'] ?? 0),
      field,
    });
  }
}

/**
 * The event with another text (the body of a JSON string) as the value of the one `field` in it; null where it is not
 * the only one.
 */
export function withText(event: string, field: string, text: string): string | null {
  const cut = cutAtText(event, field);
  return cut && cut.prefix + text + cut.suffix;
}

/** Parts of `json` before and after the body of the string value of the one `field` in it. */
function cutAtText(json: string, field: string): { prefix: string; suffix: string } | null {
  const name = `"${field}":`;
  const at = json.indexOf(name);
  if (at === -1 || json.lastIndexOf(name) !== at) return null;
  let open = at + name.length;
  while (json[open] === ' ') open += 1;
  if (json[open] !== '"') return null;
  const close = endOfString(json, open);
  return close === -1 ? null : { prefix: json.slice(0, open + 1), suffix: json.slice(close) };
}

function tryParse(json: string): unknown {
  try {
    return fromWire(json);
  } catch {
    return undefined;
  }
}

/** A copy that does not keep the network chunk alive that it was sliced from. */
function flat(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('latin1');
}
