import { RequestError } from './request-error';

export const DEFAULT_PAGE_ROWS = 100;
export const MAX_PAGE_ROWS = 200;

/** `limit` rows (`pageRows`) after the row with id `after`. */
export interface PageQuery {
  limit?: number;
  after?: string;
}

export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

/**
 * Makes a page of rows. One row more than `limit` was read, if there is one. The cursor is from the last row of the
 * page.
 */
export function toPage<T>(read: readonly T[], limit: number, cursorOf: (row: T) => string): Page<T> {
  const data = read.slice(0, limit);
  return { data, nextCursor: read.length > limit ? cursorOf(data.at(-1)!) : null };
}

/** The number of rows that a query asks for. RequestError invalid_parameter. */
export function pageRows(limit = DEFAULT_PAGE_ROWS): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE_ROWS)
    throw new RequestError('invalid_parameter', `limit must be a whole number from 1 to ${MAX_PAGE_ROWS}.`);
  return limit;
}
