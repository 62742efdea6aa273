/**
 * Chat templates write JSON in a layout of their own. Llama 3.1 indents tools by 4 (`tojson(indent=4)`), one element a
 * line. None that we know of indents more. Without an indentation, `tojson` writes a blank after each comma and colon,
 * which is less in every place.
 */
const INDENT = 4;

const [BACKSPACE, VERTICAL_TAB, RETURN, BLANK, QUOTE, BACKSLASH] = [0x08, 0x0b, 0x0d, 0x20, 0x22, 0x5c];
const [AMPERSAND, APOSTROPHE, LESS, GREATER] = [0x26, 0x27, 0x3c, 0x3e];
const [COMMA, COLON, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x2c, 0x3a, 0x7b, 0x7d, 0x5b, 0x5d];

/**
 * The fields that templates render as JSON, beside passed-on objects such as `documents`. A `response_format` is not
 * among them: engines make a grammar of its schema, or show it in one line, and no template gets it.
 */
export const INDENTED_FIELDS: ReadonlySet<string> = new Set(['tools', 'functions', 'tool_choice', 'function_call']);

/** A value as JSON with the indentation. It is up to 100 times as long as the compact JSON. */
export function indented(value: unknown): string {
  return JSON.stringify(value, null, INDENT);
}

/**
 * How many bytes `indented` has beyond the compact JSON, without making either. All of them are blanks and newlines.
 * @param value parsed JSON. `checkStructure` bounds its depth.
 * @param blanks before the line on which it ends
 */
export function layoutBytes(value: unknown, blanks = 0): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = blanks + INDENT;
  let lines = 0;
  let bytes = 0;
  if (Array.isArray(value)) {
    lines = value.length;
    for (const item of value as unknown[]) bytes += layoutBytes(item, inner);
  } else {
    for (const name in value) {
      lines += 1;
      // A blank after the colon.
      bytes += 1 + layoutBytes((value as Record<string, unknown>)[name], inner);
    }
  }
  // Each element begins a line, and so does the closing bracket.
  return lines === 0 ? 0 : bytes + lines * (1 + inner) + 1 + blanks;
}

/** An escape such as `\n`, where the character may have been part of a longer token. At most 1.4 were seen in code. */
const TOKENS_PER_ESCAPE = 2;
/** `\u0001` */
const TOKENS_PER_CONTROL = 6;
/** `\u003c`, where some engines write JSON that is safe in HTML: Ollama (`<`, `>`, `&`) and TGI (also `'`). */
const TOKENS_PER_HTML = 4;

/** How many tokens JSON that is safe in HTML may have beyond those of the same JSON. */
export function htmlTokens(json: string): number {
  let tokens = 0;
  for (let at = 0; at < json.length; at++) if (isHtml(json.charCodeAt(at))) tokens += TOKENS_PER_HTML;
  return tokens;
}

function isHtml(code: number): boolean {
  return code === LESS || code === GREATER || code === AMPERSAND || code === APOSTROPHE;
}

/**
 * How many tokens the text may have as a JSON string beyond those of the text itself. Llama's templates write the
 * result of a tool as one: a thousand newlines are a few tokens, and a thousand `\n` are a thousand.
 */
export function escapeTokens(text: string): number {
  let tokens = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isShort = code >= BACKSPACE && code <= RETURN && code !== VERTICAL_TAB;
    if (isShort || code === QUOTE || code === BACKSLASH) tokens += TOKENS_PER_ESCAPE;
    else if (code < BLANK) tokens += TOKENS_PER_CONTROL;
    else if (isHtml(code)) tokens += TOKENS_PER_HTML;
  }
  return tokens;
}

/** Tags around one argument, such as `<parameter=city>`, a newline, the value, a newline and `</parameter>`. */
const TOKENS_PER_ARGUMENT = 8;

/**
 * How many tokens a template may add to the arguments of an earlier call. Engines parse them, and templates write them
 * again: as JSON with a blank after each comma and colon, or each argument within tags.
 * @param json as the client sent it. It need not be valid: an engine refuses the request, or writes it as it is.
 */
export function argumentTokens(json: string): number {
  let tokens = 0;
  let depth = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) isText = !isText;
    else if (isHtml(code)) tokens += TOKENS_PER_HTML;
    else if (isText) at += code === BACKSLASH ? 1 : 0;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    else if (code === COMMA) tokens += 1;
    else if (code === COLON) tokens += depth === 1 ? 1 + TOKENS_PER_ARGUMENT : 1;
  }
  return tokens;
}

/** A newline. */
const TOKENS_PER_JOINT = 1;
/** After a sign, a blank or a newline: these and what follows may be cut into tokens in another way. */
const MOST_TOKENS_PER_JOINT = 2;
const ENDS_WORD = /[\p{L}\p{N}]$/u;

/**
 * How many tokens templates may add between the parts of a message: vLLM and some templates join them with newlines.
 * @param texts of the parts; empty for media
 */
export function jointTokens(texts: readonly string[]): number {
  let tokens = 0;
  for (const text of texts.slice(0, -1))
    tokens += ENDS_WORD.test(text.slice(-2)) ? TOKENS_PER_JOINT : MOST_TOKENS_PER_JOINT;
  return tokens;
}
