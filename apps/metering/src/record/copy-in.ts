import { Query, type PoolClient } from 'pg';
import type { EntityManager } from 'typeorm';

/** What pg's Connection has for COPY, and its type declaration lacks. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** `COPY … FROM STDIN` of rows that are all in memory: pg leaves answering the server's "go on" to a subclass. */
class CopyInQuery extends Query {
  constructor(
    sql: string,
    // Not "rows": that is a property of Query.
    private readonly copyText: string,
    done: (error: Error | undefined) => void,
  ) {
    super(sql, done);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(Buffer.from(this.copyText));
    connection.endCopyFrom();
  }
}

/**
 * Runs a `COPY … FROM STDIN` in the transaction. `rows` is in COPY's text form: columns between tabs, each row ended by a newline, NULL as \N,
 * backslashes doubled. Rejects as any query does.
 */
export async function copyIn(tx: EntityManager, sql: string, rows: string): Promise<void> {
  const client = (await tx.queryRunner!.connect()) as PoolClient;
  await new Promise<void>((resolve, reject) => {
    client.query(new CopyInQuery(sql, rows, (error) => (error ? reject(error) : resolve())));
  });
}
