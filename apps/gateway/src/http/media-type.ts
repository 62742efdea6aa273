import type { IncomingHttpHeaders } from 'node:http';

const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;
/** US-ASCII is a part of UTF-8. */
const UTF8_NAMES: ReadonlySet<string> = new Set(['utf-8', 'utf8', 'us-ascii']);
const MAX_SHOWN_CHARS = 40;

/** Why a body is not read as JSON: a public message. Null: it is read. */
export function validateMediaType(headers: IncomingHttpHeaders): string | null {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (encoding.trim().toLowerCase() !== 'identity')
    return `The Content-Encoding "${shown(encoding)}" is not supported. Send the body as it is.`;
  if (type.split(';', 1)[0]!.trim().toLowerCase() !== 'application/json')
    return 'The body must be JSON. Send "Content-Type: application/json".';
  const charset = CHARSET.exec(type)?.[1];
  if (charset !== undefined && !UTF8_NAMES.has(charset.toLowerCase()))
    return `The charset "${shown(charset)}" is not supported. Send JSON in UTF-8.`;
  return null;
}

function shown(text: string): string {
  return text.slice(0, MAX_SHOWN_CHARS);
}
