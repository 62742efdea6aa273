import { Query, type Connection, type ClientBase } from 'pg';

/** What pg's Connection has for COPY, and its type declaration lacks. */
interface CopyConnection extends Connection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/**
 * `COPY … FROM STDIN` of rows that are all in memory. They are sent right behind the statement, without waiting for the
 * server's "go on": when it refuses the statement, it ignores what follows it (PostgreSQL's protocol has it so for
 * clients that learn of a failure late).
 */
class CopyInQuery extends Query {
  constructor(sql: string, copyText: string, done: (error: Error | undefined) => void) {
    super(sql, done);
    const submit = this.submit.bind(this);
    this.submit = (connection) => {
      submit(connection);
      (connection as CopyConnection).sendCopyFromChunk(Buffer.from(copyText));
      (connection as CopyConnection).endCopyFrom();
    };
  }

  /** pg's own answer to "go on" would be to call the COPY off. */
  handleCopyInResponse(): void {}
}

/**
 * Runs a `COPY … FROM STDIN`, which is on its way when this returns. `rows` is in COPY's text form: columns between
 * tabs, each row ended by a newline, NULL as \N, backslashes doubled. Rejects as any query does.
 */
export function copyIn(client: ClientBase, sql: string, rows: string): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query(new CopyInQuery(sql, rows, (error) => (error ? reject(error) : resolve())));
  });
}
