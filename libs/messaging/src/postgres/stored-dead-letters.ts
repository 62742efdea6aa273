import { TOPICS, type Topic } from '@tollgate/contracts';
import { withClient } from '@tollgate/postgres';
import type { Client } from 'pg';
import { channelOf, MIGRATIONS, NOT_A_BATCH, queueName, type Topics } from './queues';

/** The maximum bytes of letters in memory at the same time. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** For each statement. A replay that takes longer changes nothing. */
const STATEMENT_TIMEOUT_MS = 120_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A message that a group quarantined as unreadable, in PostgreSQL. */
export interface StoredDeadLetter {
  topic: Topic;
  group: string;
  /** A UUID. */
  id: string;
  reason: string;
  /** The time of the quarantine: ISO 8601 UTC. */
  at: string;
  /** What was delivered, as JSON. */
  message: string;
}

export interface DeadPlace {
  url: string;
  schema?: string;
  topics?: Topics;
}

/** The identity of a dead letter within its topic. */
export const storedOriginOf = ({ group, id }: Pick<StoredDeadLetter, 'group' | 'id'>): string => `${group}/${id}`;

/**
 * The messages of a topic, or of all topics, that were quarantined and not replayed, oldest first, and the number of
 * further ones. Returns at most `limit` letters, and at most MAX_HELD_BYTES of them, but at least one. Rejects with the
 * error of `pg`.
 */
export async function listStoredDead(
  { topics = TOPICS, schema = MIGRATIONS.schema, url }: DeadPlace,
  { topic, limit = 1_000 }: { topic?: Topic; limit?: number } = {},
): Promise<{ letters: StoredDeadLetter[]; left: number }> {
  const queues = (topic ? [topic] : (Object.keys(topics) as Topic[])).flatMap((each) => groupsOf(topics, each));
  return connected({ url, schema }, async (client) => {
    const { rows } = await client.query<{ queue: string; all: number; created_at: Date } & StoredDeadLetter>(
      `SELECT queue, id, created_at, reason, message::text AS message, "all" FROM (
         SELECT *, count(*) OVER ()::int AS "all", row_number() OVER by_age AS place,
           sum(octet_length(message::text)) OVER by_age AS bytes
         FROM ${schema}.dead WHERE queue = ANY ($1)
         WINDOW by_age AS (ORDER BY created_at, queue, id)
       ) AS measured
       WHERE place <= $2 AND (bytes <= ${MAX_HELD_BYTES} OR place = 1) ORDER BY place`,
      [queues.map(({ queue }) => queue), limit],
    );
    const letters = rows.map(({ queue, id, created_at, reason, message }) => {
      const { topic, group } = queues.find((each) => each.queue === queue)!;
      return { topic, group, id, reason, at: created_at.toISOString(), message };
    });
    return { letters, left: (rows[0]?.all ?? 0) - letters.length };
  });
}

/**
 * Replays the letters of a topic with these origins, or all that are quarantined at the time of the call: each goes to
 * its group, behind the waiting messages, and out of quarantine in the same transaction. So none is lost, and none is
 * replayed twice. Returns the origins of the replayed letters. If a named origin does not exist, it replays nothing and
 * returns the missing ones. Rejects with the error of `pg`; then nothing was replayed, unless the connection broke.
 */
export async function replayStoredDead(
  { topics = TOPICS, schema = MIGRATIONS.schema, url }: DeadPlace,
  topic: Topic,
  origins: readonly string[] | 'all',
): Promise<{ replayed: string[]; missing: string[] }> {
  const groups = groupsOf(topics, topic);
  const wanted = origins === 'all' ? null : origins.map((origin) => placeOf(groups, origin));
  return connected({ url, schema }, async (client) => {
    await client.query('BEGIN');
    const { rows } = await client.query<{ queue: string; id: string }>(
      `WITH taken AS (
         DELETE FROM ${schema}.dead WHERE queue = ANY ($1)
           AND ($2::text[] IS NULL OR (queue, id) IN (SELECT * FROM unnest($2::text[], $3::uuid[])))
         RETURNING *
       ), inserted AS (
         INSERT INTO ${schema}.batch (queue, data)
         SELECT queue, CASE reason WHEN $4 THEN message::jsonb
           ELSE jsonb_build_object('messages', jsonb_build_array(message::jsonb)) END
         FROM taken ORDER BY created_at, queue, id
       )
       SELECT queue, id FROM taken ORDER BY created_at, queue, id`,
      [
        groups.map(({ queue }) => queue),
        wanted && wanted.map((place) => place?.queue),
        wanted && wanted.map((place) => place?.id),
        NOT_A_BATCH,
      ],
    );
    const replayed = rows.map(({ queue, id }) =>
      storedOriginOf({ group: groups.find((each) => each.queue === queue)!.group, id }),
    );
    const found = new Set(replayed);
    const missing = origins === 'all' ? [] : [...new Set(origins)].filter((origin) => !found.has(origin));
    if (missing.length > 0) {
      await client.query('ROLLBACK');
      return { replayed: [], missing };
    }
    await client.query(`SELECT pg_notify($1, queue) FROM unnest($2::text[]) AS queue`, [
      channelOf(schema),
      [...new Set(rows.map(({ queue }) => queue))],
    ]);
    await client.query('COMMIT');
    return { replayed, missing };
  });
}

const groupsOf = (topics: Topics, topic: Topic) =>
  Object.keys(topics[topic].groups).map((group) => ({ topic, group, queue: queueName(topic, group) }));

/** Undefined: no letter has such an origin. */
function placeOf(groups: ReturnType<typeof groupsOf>, origin: string): { queue: string; id: string } | undefined {
  const [name, id = ''] = origin.split('/');
  const of = groups.find(({ group }) => group === name);
  return of && UUID.test(id) && origin === storedOriginOf({ group: of.group, id })
    ? { queue: of.queue, id }
    : undefined;
}

async function connected<T>(
  { url, schema }: { url: string; schema: string },
  work: (client: Client) => Promise<T>,
): Promise<T> {
  return withClient({ url, schema, applicationName: 'tollgate-dead' }, async (client) => {
    await client.query(`SET statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
    return work(client);
  });
}
