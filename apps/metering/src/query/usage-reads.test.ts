import { newId, UnavailableError } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { Client } from 'pg';
import type { MeteringDataSource } from '../database';
import { useMeteringDatabase } from '../metering-database.fixture';
import { UsageQueries } from './usage-query';
import { UsageReads } from './usage-reads';
import { UsageSeriesQueries } from './usage-series';

const database = useMeteringDatabase();
const [ONE, OTHER] = [newId('ten'), newId('ten')];
/** Long enough that reads which wait for nothing are in time on a busy machine. */
const SHORT_MS = 2_000;
const RANGE = { from: '2026-01-01', to: '2026-02-01' };

/** A database that is never late. */
const AT_ONCE = {
  transaction: (work: (tx: object) => unknown) => work({ query: () => [], queryRunner: { connect: () => ({}) } }),
} as unknown as MeteringDataSource;

/** Reads that run until they are ended. */
class Reads {
  readonly begun: string[] = [];
  readonly ends: (() => void)[] = [];

  constructor(private readonly reads: UsageReads) {}

  begin(tenantId: string): Promise<void> {
    const { transaction } = this.reads.of(tenantId);
    return transaction(() => {
      this.begun.push(tenantId);
      return new Promise((end) => this.ends.push(end));
    });
  }

  /** Ends every read as soon as it has begun. */
  async endAll(ended: readonly Promise<unknown>[]): Promise<void> {
    let done = false;
    const all = Promise.all(ended).then(() => (done = true));
    await eventually(() => {
      this.ends.splice(0).forEach((end) => end());
      expect(done).toBe(true);
    });
    await all;
  }

  async haveBegun(...tenantIds: string[]): Promise<void> {
    await eventually(() => expect(this.begun.length).toBeGreaterThanOrEqual(tenantIds.length));
    expect(this.begun).toEqual(tenantIds);
  }
}

describe('reads of usage', () => {
  it('are three at the same time, two of a tenant, and otherwise in order', async () => {
    const reads = new Reads(new UsageReads(AT_ONCE, 60_000));
    const ended = [ONE, ONE, ONE, OTHER, OTHER].map((tenantId) => reads.begin(tenantId));
    await reads.haveBegun(ONE, ONE, OTHER);
    // The third one of the first tenant has waited longest.
    reads.ends[0]!();
    await reads.haveBegun(ONE, ONE, OTHER, ONE);
    reads.ends[1]!();
    await reads.haveBegun(ONE, ONE, OTHER, ONE, OTHER);
    reads.ends.forEach((end) => end());
    await Promise.all(ended);
  });

  it('are unavailable if they wait until their deadline, and the next ones are not', async () => {
    const short = new UsageReads(AT_ONCE, SHORT_MS);
    const reads = new Reads(short);
    const ended = [ONE, ONE].map((tenantId) => reads.begin(tenantId));
    await expect(short.of(ONE).transaction(async () => 1)).rejects.toThrow(UnavailableError);
    reads.ends.forEach((end) => end());
    await Promise.all(ended);
    expect(await short.of(ONE).transaction(async () => 1)).toBe(1);
  });

  it('are refused at once if a hundred wait', async () => {
    const reads = new Reads(new UsageReads(AT_ONCE, 60_000));
    const ended = Array.from({ length: 102 }, () => reads.begin(ONE));
    await expect(reads.begin(ONE)).rejects.toThrow('too many usage queries wait');
    await reads.endAll(ended);
  });

  it('of a tenant whose hundred wait keep no other tenant from reading', async () => {
    const reads = new Reads(new UsageReads(AT_ONCE, 60_000));
    const ended = Array.from({ length: 102 }, () => reads.begin(ONE));
    // The first of the others leaves its place at once. It and the third one take that of the newest waiting read.
    const refused = Promise.allSettled(ended.splice(-2));
    const others = Promise.all(Array.from({ length: 3 }, () => reads.begin(OTHER)));
    await reads.endAll([...ended, others]);
    expect(await refused).toEqual([
      { status: 'rejected', reason: expect.any(UnavailableError) },
      { status: 'rejected', reason: expect.any(UnavailableError) },
    ]);
    expect(reads.begun.slice(0, 3)).toEqual([ONE, ONE, OTHER]);
    expect(reads.begun).toHaveLength(103);
  });

  it('end in the database at their deadline', async () => {
    const { dataSource } = database;
    const reads = new UsageReads(dataSource, SHORT_MS);
    const queries = [
      () => new UsageQueries(dataSource, reads).query({ ...RANGE, tenantId: ONE, groupBy: ['hour', 'key'] }),
      () => new UsageSeriesQueries(reads).query({ ...RANGE, tenantId: ONE, step: 'day' }),
    ];
    const other = new Client({ connectionString: database.url });
    await other.connect();
    await other.query('BEGIN; LOCK TABLE metering.usage_hour');
    for (const query of queries) await expect(query()).rejects.toThrow(UnavailableError);
    const waiting = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'active' AND wait_event_type = 'Lock'`;
    expect(await database.query(waiting)).toEqual([]);
    await other.end();
    // On a busy machine, a query may take longer than that.
    await eventually(() => Promise.all(queries.map((query) => query())));
  });
});
