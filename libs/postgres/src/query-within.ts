import type { ClientBase, QueryConfig, QueryResult, QueryResultRow } from 'pg';

/**
 * Runs a statement on a connection, and rejects with "Query read timeout" if it has no answer within the time. Then end
 * the connection: its next query would wait behind the one that is never answered.
 *
 * Passing a callback on avoids garbage in the old generation of V8. When node-postgres makes a promise or has a
 * `query_timeout`, it assigns a function to the query. V8 makes such a function in the old generation, and all that it
 * refers to follows: the query, its rows, and whatever waits for them. With Node 24, that is 4,200 bytes of a query
 * with 2,400 bytes of rows. With a callback, it is 430 bytes. Only a full collection frees them, which took up to
 * 127 ms of CPU in one turn of the event loop.
 * @param timeoutMs null: no limit
 */
export function queryWithin<R extends QueryResultRow>(
  client: ClientBase,
  query: QueryConfig,
  timeoutMs: number | null,
): Promise<QueryResult<R>> {
  return new Promise((resolve, reject) => {
    const timer = timeoutMs === null ? undefined : setTimeout(() => reject(new Error('Query read timeout')), timeoutMs);
    client.query<R>(query, (error: Error | null, result) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(result);
    });
  });
}
