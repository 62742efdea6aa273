import type { FastifyRequest } from 'fastify';
import { ConsoleError } from './errors';

const NUL = '\0';
/**
 * JSON.stringify writes these characters only as escapes, with small letters. Before an escape is an even number of
 * backslashes.
 */
const ESCAPED = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * PostgreSQL stores no text with U+0000: nothing has such a name, and nothing can get one. So it refuses the statement,
 * also a search. Such a request ends before it reaches a statement or another service. Errors: not_found for its path,
 * invalid_parameter for its query.
 */
export function refuseNul({ params, query }: Pick<FastifyRequest, 'params' | 'query'>): void {
  if (hasNul(params)) throw new ConsoleError('not_found');
  if (hasNul(query)) throw new ConsoleError('invalid_parameter', 'The query must not have the character U+0000.');
}

/**
 * The same for the value of a body, which may also have half of a surrogate pair. PostgreSQL stores none in JSON, as of
 * the audit log. Paths and queries have none: they are UTF-8.
 */
export const isStorable = (value: unknown): boolean => !ESCAPED.test(JSON.stringify(value));

/** A parameter that is repeated has several values. */
const hasNul = (values: unknown): boolean =>
  Object.values(values ?? {})
    .flat()
    .some((value) => typeof value === 'string' && value.includes(NUL));
