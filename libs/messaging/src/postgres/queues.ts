import { join } from 'node:path';
import type { Envelope, Service, Topic, TopicDefinition } from '@tollgate/contracts';
import { migrate, serviceRole, withClient } from '@tollgate/postgres';
import type { Pool } from 'pg';
import { MAX_BATCH_MESSAGES } from '../messages';

export type Topics = Record<Topic, TopicDefinition>;

/** The migrations of the tables, in their usual schema. */
export const MIGRATIONS = { schema: 'messages', directory: join(__dirname, 'migrations') };

/** Where a store's tables are. */
export interface StorePlace {
  url: string;
  schema: string;
}

/** A statement, prepared if it has a name. */
export interface Statement {
  name?: string;
  text: string;
  values: unknown[];
}

/** The reason why a whole row is quarantined. Of all other rows, single messages are. */
export const NOT_A_BATCH = 'not a batch of messages';

export const queueName = (topic: Topic, group: string) => `${topic}.${group}`;

/** The LISTEN channel of a schema. The payload is the queue that has news. */
export const channelOf = (schema: string) => `tollgate ${schema}`;

/** Creates the tables. Safe when several processes start at once. */
export async function makeTables({ url, schema }: StorePlace): Promise<void> {
  await migrate({ ...MIGRATIONS, url, schema });
}

/**
 * Lets these services insert messages in their own transactions. It changes nothing but rows that nobody has read: a
 * service can publish, and not read or delete. A service whose role does not exist runs as the database's user.
 */
export async function grantPublishing({ url, schema }: StorePlace, services: readonly Service[]): Promise<void> {
  await withClient({ url, schema, applicationName: `tollgate-migrate-${schema}` }, async (client) => {
    // Two GRANTs on one table at the same time fail. The lock ends with the connection.
    await client.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-migrate', 0))`);
    const { rows } = await client.query<{ role: string }>(
      `SELECT rolname AS role FROM pg_roles
       WHERE rolname = ANY ($1)
         AND NOT (has_schema_privilege(oid, $2, 'USAGE') AND has_table_privilege(oid, $2 || '.batch', 'INSERT'))`,
      [services.map(serviceRole), schema],
    );
    for (const { role } of rows)
      await client.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT INSERT ON ${schema}.batch TO ${role}`);
  });
}

/**
 * Inserts one publish call into its queues, MAX_BATCH_MESSAGES messages a row: whole batches are several times faster
 * to insert and read than single messages (README). Notifies of the queues in `remote` when its transaction commits.
 */
export function insertBatches(
  schema: string,
  envelopes: readonly Envelope[],
  { queues, remote }: { queues: readonly string[]; remote: readonly string[] },
): Statement {
  const parts: string[] = [];
  for (let start = 0; start < envelopes.length; start += MAX_BATCH_MESSAGES)
    parts.push(JSON.stringify({ messages: envelopes.slice(start, start + MAX_BATCH_MESSAGES) }));
  const rows = parts.map((_, index) => `(${index}, $${index + 3}::jsonb)`);
  const insert = `
    INSERT INTO ${schema}.batch (queue, data)
    SELECT queue, data FROM unnest($1::text[]) AS queue, (VALUES ${rows.join(', ')}) AS part (n, data) ORDER BY n`;
  return {
    // Longer calls are rare. A name for each length would keep as many plans.
    ...(parts.length === 1 && { name: 'publish' }),
    text: `
    WITH inserted AS (${insert})
    SELECT pg_notify('${channelOf(schema)}', queue) FROM unnest($2::text[]) AS queue`,
    values: [queues, remote, ...parts],
  };
}

/**
 * The number of unacknowledged messages by queue. Queues without any are left out. A row that is not a batch counts as
 * one message.
 */
export async function countWaiting(
  pool: Pool,
  schema: string,
  queues: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ queue: string; count: string }>(
    `SELECT queue,
            sum(CASE jsonb_typeof(data->'messages')
                WHEN 'array' THEN jsonb_array_length(data->'messages') ELSE 1 END) AS count
     FROM ${schema}.batch WHERE queue = ANY ($1) GROUP BY queue`,
    [queues],
  );
  return new Map(rows.map(({ queue, count }) => [queue, Number(count)]));
}
