import { Query, type Connection } from 'pg';
import type { EntityManager } from 'typeorm';
import { connectionOf } from './statements';

/** Methods of pg's Connection for COPY that its type declaration lacks. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/**
 * `COPY … FROM STDIN` of rows in memory. The rows follow the statement without waiting for the server's "go on". If the
 * server refuses the statement, it ignores the rows, as PostgreSQL's protocol defines for clients that learn of a
 * failure late.
 */
class CopyInQuery extends Query {
  constructor(
    sql: string,
    private readonly copyText: string,
    done: (error: Error | undefined) => void,
  ) {
    super(sql, done);
    const submit = this.submit.bind(this);
    // A constant first: V8 makes a function that is assigned to a property in the old generation, with the rows.
    const submitWithRows = (connection: Connection) => {
      submit(connection);
      (connection as CopyConnection).sendCopyFromChunk(Buffer.from(this.copyText));
      (connection as CopyConnection).endCopyFrom();
    };
    this.submit = submitWithRows;
  }

  /** pg's default answer to "go on" would abort the COPY. */
  handleCopyInResponse(): void {}
}

/**
 * Starts a `COPY … FROM STDIN`; it has been sent when this returns. `rows` is in COPY's text form: columns separated by
 * tabs, each row ended by a newline, NULL as \N, backslashes doubled. Rejects like any query.
 */
export type CopyIn = (sql: string, rows: string) => Promise<void>;

/** COPY on the connection of a transaction. */
export async function copyInOn(tx: EntityManager): Promise<CopyIn> {
  const client = await connectionOf(tx);
  return (sql, rows) =>
    new Promise((resolve, reject) => {
      client.query(new CopyInQuery(sql, rows, (error) => (error ? reject(error) : resolve())));
    });
}
