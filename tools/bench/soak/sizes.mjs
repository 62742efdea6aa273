// The sizes of tables, of the write-ahead log and of Redis.
import { withDatabase } from '../measure/database.mjs';

/**
 * @returns {Promise<Record<string, { bytes: number, rows: number, dead: number }>>}  by name; partitions are counted
 *   with their table
 */
export async function sizesOf(form) {
  const sizes = await withDatabase(form.database, async (client) => {
    await client.query('CHECKPOINT');
    const { rows } = await client.query(
      `SELECT coalesce(p.inhparent, s.relid)::regclass::text AS name, sum(pg_total_relation_size(s.relid)) AS bytes,
              sum(s.n_live_tup) AS rows, sum(s.n_dead_tup) AS dead
         FROM pg_stat_user_tables s LEFT JOIN pg_inherits p ON p.inhrelid = s.relid GROUP BY 1
        UNION ALL SELECT 'write-ahead log', sum(size), 0, 0 FROM pg_ls_waldir()`,
    );
    return Object.fromEntries(
      rows.map(({ name, bytes, rows: live, dead }) => [
        name,
        { bytes: Number(bytes), rows: Number(live), dead: Number(dead) },
      ]),
    );
  });
  const redis = await form.redisSize?.();
  return { ...sizes, ...(redis && { Redis: { ...redis, dead: 0 } }) };
}
