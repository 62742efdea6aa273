import { MustBe } from './config-rules';

const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const VALUE = /^[\t\x20-\x7e]{1,8192}$/;
const MAX_HEADERS = 32;
/** The gateway sets these itself, or HTTP does. */
const OURS = new Set(
  (
    'accept accept-encoding authorization connection content-encoding content-length content-type expect host ' +
    'keep-alive te trailer traceparent tracestate transfer-encoding upgrade x-request-id'
  ).split(' '),
);

/** Names of headers with their values, which the gateway does not set itself. */
export const IsHeaders = (): PropertyDecorator =>
  MustBe(
    `a mapping of at most ${MAX_HEADERS} names of headers to values in ASCII, without: ${[...OURS].join(', ')}`,
    areHeaders,
  );

function areHeaders(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const headers = Object.entries(value);
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  return (
    headers.length <= MAX_HEADERS &&
    names.size === headers.length &&
    headers.every(
      ([name, text]) =>
        NAME.test(name) && !OURS.has(name.toLowerCase()) && typeof text === 'string' && VALUE.test(text),
    )
  );
}
