import { toPage, type Page } from '@tollgate/contracts';

/** A page of a list in the order of time. `after`: the `nextCursor` of the page before. */
export interface TimedPageQuery {
  limit: number;
  after?: string;
}

/** A cursor has the time and the id of its row, so it also works when that row is gone. */
export const TIMED_CURSOR_FORM = '^\\d{1,17}\\.[A-Za-z0-9_-]{1,64}$';

/** SQL: microseconds since 1970, because a Date would drop them. */
export const microsOf = (column: string) => `(extract(epoch FROM ${column}) * 1000000)::bigint`;

/** The microseconds, as a decimal, and the id of a cursor. Null: the list begins. */
export function cursorParts(after: string | undefined): [string | null, string | null] {
  const [micros = null, id = null] = after?.split('.', 2) ?? [];
  return [micros, id];
}

/** `rows`: up to `limit` + 1 */
export function timedPage<Row extends { micros: string }, Shown>(
  rows: readonly Row[],
  limit: number,
  { idOf, shown }: { idOf: (row: Row) => string; shown: (row: Omit<Row, 'micros'>) => Shown },
): Page<Shown> {
  const page = toPage(rows, limit, (row) => `${row.micros}.${idOf(row)}`);
  return { ...page, data: page.data.map(({ micros: _, ...row }) => shown(row)) };
}
