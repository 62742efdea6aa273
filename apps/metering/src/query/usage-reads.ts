import { UnavailableError } from '@tollgate/contracts';
import { DEFAULT_REQUEST_DEADLINE_MS } from '@tollgate/messaging';
import { sqlState, withStatementTimeout } from '@tollgate/postgres';
import { withTimeout } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import type { MeteringDataSource } from '../database';
import type { Transactions } from './by-index';

/** The others of the pool's connections record usage. */
const MAX_READS = 3;
/** So a tenant that asks for years by the hour keeps nobody else waiting. */
const MAX_READS_OF_TENANT = 2;
const MAX_WAITING = 100;
/** SQLSTATE query_canceled: the statement timeout. */
const CANCELED = '57014';

interface Waiting {
  tenantId: string;
  begin: () => void;
  refuse: (error: Error) => void;
  isRefused: boolean;
}

/**
 * Reads usage of any range: a few at the same time, of all tenants and of each one, because the consumers that record
 * usage have the same connections. Others wait in order. If too many wait, the newest one of the tenant with the most
 * is refused. The wait and the statements end at the deadline of the request, so that the database does not work for a
 * caller who has gone.
 */
export class UsageReads {
  private readonly waiting: Waiting[] = [];
  /** The tenant of each read in progress. */
  private readonly reading: string[] = [];

  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly deadlineMs = DEFAULT_REQUEST_DEADLINE_MS,
  ) {}

  /** Transactions of a tenant. UnavailableError at the deadline, or earlier if too many wait. */
  of(tenantId: string): Transactions {
    return { transaction: (work) => this.transaction(tenantId, work) };
  }

  private async transaction<T>(tenantId: string, work: (tx: EntityManager) => Promise<T>): Promise<T> {
    const endMs = performance.now() + this.deadlineMs;
    await this.turn(tenantId);
    try {
      return await this.dataSource.transaction(async (tx) => {
        // The pool may have kept it waiting, too.
        const leftMs = Math.floor(endMs - performance.now());
        if (leftMs < 1) throw this.late();
        await withStatementTimeout(tx, leftMs);
        return work(tx);
      });
    } catch (error) {
      throw sqlState(error) === CANCELED ? this.late() : error;
    } finally {
      this.reading.splice(this.reading.indexOf(tenantId), 1);
      this.beginNext();
    }
  }

  private async turn(tenantId: string): Promise<void> {
    let waiting!: Waiting;
    const begun = new Promise<void>((begin, refuse) => {
      waiting = { tenantId, begin, refuse, isRefused: false };
    });
    this.waiting.push(waiting);
    this.beginNext();
    if (this.waiting.length > MAX_WAITING) this.refuseOne();
    try {
      await withTimeout(this.deadlineMs, begun, () => this.late());
    } catch (error) {
      if (waiting.isRefused) throw error;
      const place = this.waiting.indexOf(waiting);
      // It began at that moment, and ends itself.
      if (place === -1) return;
      this.waiting.splice(place, 1);
      throw error;
    }
  }

  /** So a tenant that asks very often keeps no other tenant from waiting. */
  private refuseOne(): void {
    const counts = new Map<string, number>();
    for (const { tenantId } of this.waiting) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const newest = this.waiting.findLastIndex(({ tenantId }) => counts.get(tenantId) === most);
    const [refused] = this.waiting.splice(newest, 1) as [Waiting];
    refused.isRefused = true;
    refused.refuse(new UnavailableError('too many usage queries wait'));
  }

  private beginNext(): void {
    if (this.reading.length >= MAX_READS) return;
    const next = this.waiting.findIndex(
      ({ tenantId }) => this.reading.filter((reading) => reading === tenantId).length < MAX_READS_OF_TENANT,
    );
    if (next === -1) return;
    const [{ tenantId, begin }] = this.waiting.splice(next, 1) as [Waiting];
    this.reading.push(tenantId);
    begin();
  }

  private late(): UnavailableError {
    return new UnavailableError(`the usage could not be read within ${this.deadlineMs} ms`);
  }
}
