import { AsyncLocalStorage } from 'node:async_hooks';
import { Client, type QueryResult } from 'pg';

/** A statement of a call. */
export interface Statement {
  sql: string;
  /** The pages of tables and indexes that it read, from memory or not. */
  buffers: number;
}

interface Explained {
  'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }];
}

type Query = (this: Client, ...given: unknown[]) => unknown;
const prototype = Client.prototype as unknown as { query: Query };
const READS = /^\s*(SELECT|WITH)\b/;
const SETTINGS = /\bset_config\(/;

/**
 * Counts what the statements of a call in this process read. Each is explained before it runs: on its own connection,
 * in its transaction and with its values. A count is the same on a busy machine, where a time is not. Statements of
 * background work are not among them.
 */
export function useStatementBuffers(): { of: (call: () => Promise<unknown>) => Promise<Statement[]> } {
  const calls = new AsyncLocalStorage<{ statements: Statement[]; errors: Error[] }>();
  const query = prototype.query;
  beforeAll(() => {
    prototype.query = function (...given): unknown {
      const call = calls.getStore();
      const [first, second] = given;
      const { text, values = [] } = (typeof first === 'string' ? { text: first, values: second } : first) as {
        text: string;
        values?: unknown;
      };
      if (call && READS.test(text) && !SETTINGS.test(text)) {
        const explained = (error: Error | null, result: QueryResult<Explained>) => {
          if (error) return void call.errors.push(error);
          const { Plan: plan } = result.rows[0]!['QUERY PLAN'][0];
          call.statements.push({ sql: text, buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] });
        };
        const sql = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`;
        // The connection answers it before the statement itself.
        query.call(this, sql, Array.isArray(values) ? values : [], explained);
      }
      return query.apply(this, given);
    };
  });
  afterAll(() => {
    prototype.query = query;
  });
  return {
    async of(call) {
      const found = { statements: [] as Statement[], errors: [] as Error[] };
      await calls.run(found, call);
      if (found.errors.length > 0) throw new AggregateError(found.errors, 'statements could not be explained');
      return found.statements;
    },
  };
}
