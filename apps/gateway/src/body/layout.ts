/**
 * Chat templates write JSON in a layout of their own. Llama 3.1 indents tools by 4 (`tojson(indent=4)`), one element a
 * line. None that we know of indents more. Without an indentation, `tojson` writes a blank after each comma and colon,
 * which is less in every place.
 */
const INDENT = 4;

/**
 * The fields that templates render as JSON, beside passed-on objects such as `documents`. A `response_format` is not
 * among them: engines make a grammar of its schema, or show it in one line, and no template gets it.
 */
export const INDENTED_FIELDS: ReadonlySet<string> = new Set(['tools', 'functions', 'tool_choice', 'function_call']);

/** A value as JSON with the indentation. Its length is up to 100 times that of the compact JSON. */
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
