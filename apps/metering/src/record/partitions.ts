import { idBound } from '@tollgate/contracts';
import { sqlState, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';

/** The month before (an event may come late), this one, and two ahead: a process that runs needs a new one once in two months at the latest. */
const MONTHS_BEHIND = 1;
const MONTHS_AHEAD = 2;
const EVERY_MS = 24 * 60 * 60 * 1000;
const RETRY_MS = 60_000;
/** Attaching needs the default partition for itself for a moment: rather than hold up consumers behind it, give up and try again. */
const LOCK_TIMEOUT_MS = 2_000;

interface Month {
  /** `usage_event_YYYY_MM` */
  table: string;
  /** Ids from here, inclusive, to there, exclusive. */
  from: string;
  to: string;
}

/**
 * Keeps the months of `usage_event` ready: at start, and daily. Any number of processes may do it at once. An event for which there is no month goes into
 * the default partition, and moves when its month is made; so being late is a matter of tidiness, not of loss.
 */
export class Partitions {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly dataSource: DataSource) {}

  async start(): Promise<void> {
    this.running = this.keep();
    await this.running;
  }

  async stop(): Promise<void> {
    await this.running;
    clearTimeout(this.timer);
  }

  /** Makes the months around `nowMs` that are missing, each in a transaction of its own. */
  async ensure(nowMs = Date.now()): Promise<void> {
    for (let offset = -MONTHS_BEHIND; offset <= MONTHS_AHEAD; offset++) {
      const month = monthOf(nowMs, offset);
      if (await isAttached(this.dataSource.manager, month)) continue;
      await transaction(this.dataSource, (tx) => attach(tx, month));
    }
  }

  /** Never rejects: the default partition takes everything until it works. */
  private async keep(): Promise<void> {
    let nextMs = EVERY_MS;
    try {
      await this.ensure();
    } catch (error) {
      logger('metering').error(
        { err: error, sqlState: sqlState(error) },
        'the partitions of usage_event could not be made; tried again',
      );
      nextMs = RETRY_MS;
    }
    this.timer = setTimeout(() => (this.running = this.keep()), nextMs).unref();
  }
}

async function attach(tx: EntityManager, { table, from, to }: Month): Promise<void> {
  await tx.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('tollgate-metering-partitions', 0))`);
  if (await isAttached(tx, { table, from, to })) return;
  // Consumers wait here while they write into the default partition; a row of this month that they then try to put there is refused, and their batch comes again.
  await tx.query('LOCK TABLE usage_event_default IN ACCESS EXCLUSIVE MODE');
  // CREATE TABLE … PARTITION OF would lock the whole of usage_event; ATTACH lets consumers write into the other months.
  await tx.query(`CREATE TABLE ${table} (LIKE usage_event INCLUDING DEFAULTS INCLUDING INDEXES)`);
  await tx.query(
    `WITH moved AS (DELETE FROM usage_event_default WHERE id >= '${from}' AND id < '${to}' RETURNING *) INSERT INTO ${table} SELECT * FROM moved`,
  );
  await tx.query(`ALTER TABLE usage_event ATTACH PARTITION ${table} FOR VALUES FROM ('${from}') TO ('${to}')`);
}

async function isAttached(tx: EntityManager, { table }: Month): Promise<boolean> {
  const rows: unknown[] = await tx.query(
    `SELECT 1 FROM pg_inherits WHERE inhparent = 'usage_event'::regclass AND inhrelid = to_regclass($1)`,
    [table],
  );
  return rows.length > 0;
}

function monthOf(nowMs: number, offset: number): Month {
  const now = new Date(nowMs);
  const start = (months: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1);
  const name = new Date(start(offset)).toISOString().slice(0, 7).replace('-', '_');
  return { table: `usage_event_${name}`, from: idBound('req', start(offset)), to: idBound('req', start(offset + 1)) };
}
