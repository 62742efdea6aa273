import type { EntityManager } from 'typeorm';

/** What runs a statement: a data source, or the manager of a transaction. */
export type Statements = Pick<EntityManager, 'query'>;

/**
 * The rows of a statement, whatever it is. TypeORM's own `query` answers an UPDATE or a DELETE with `[rows, count]` and
 * every other statement with its rows: this file alone knows of it.
 */
export async function query<Row>(on: Statements, sql: string, parameters: unknown[] = []): Promise<Row[]> {
  const answer = await on.query<unknown>(sql, parameters);
  return (isCounted(answer) ? answer[0] : answer) as Row[];
}

/** How many rows an UPDATE or a DELETE has changed. */
export async function changedRows(on: Statements, sql: string, parameters: unknown[] = []): Promise<number> {
  const answer = await on.query<unknown>(sql, parameters);
  if (!isCounted(answer)) throw new Error('only an UPDATE or a DELETE says how many rows it has changed');
  return answer[1];
}

/** A row is an object, so an array whose first element is an array is no list of rows. */
function isCounted(answer: unknown): answer is [unknown[], number] {
  return Array.isArray(answer) && answer.length === 2 && Array.isArray(answer[0]) && typeof answer[1] === 'number';
}
