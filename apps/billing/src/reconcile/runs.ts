import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import {
  isId,
  newId,
  RequestError,
  UnavailableError,
  type Author,
  type ReconcileReport,
  type ReconcileRun,
} from '@tollgate/contracts';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import { BillingDataSource } from '../database';
import { Findings } from './findings';
import { countRun } from './metrics';
import { Reconciler } from './reconciler';

/** Per process. Each run reads all the books. */
const MAX_RUNNING = 4;
const BEAT_MS = 1_000;
/** A run without a heartbeat for this long died with its process. */
const DEAD_AFTER_MS = 15_000;
/** How long a report is kept, and the newest complete one until another run is complete. */
const KEPT_MS = 24 * 60 * 60 * 1_000;

interface Row {
  id: string;
  state: 'running' | 'done' | 'failed';
  started_at: Date;
  dead: boolean;
  progress: { events: number; tenants: number; differenceCount: number };
  report: ReconcileReport | null;
  reason: string | null;
}

/** The newest complete run. Its result is in force until a later run is complete. */
const NEWEST_DONE = `
  SELECT id, progress FROM reconcile_run WHERE state = 'done' ORDER BY started_at DESC, id DESC LIMIT 1`;

/**
 * Runs of reconcile. One takes minutes over millions of events, but the caller of the operator API waits for seconds.
 * So a request starts a run, which continues by itself, and other requests ask for its state. The state is a row, so
 * any replica can answer.
 */
@Injectable()
export class ReconcileRuns implements BeforeApplicationShutdown {
  private readonly running = new Map<string, Promise<void>>();
  private readonly stopping = new AbortController();

  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly reconciler: Reconciler,
  ) {}

  async start(by?: Author): Promise<{ id: string }> {
    if (this.running.size >= MAX_RUNNING)
      throw new RequestError('reconcile_busy', `${MAX_RUNNING} reconcile runs are in progress. Wait until one ends.`);
    const id = newId('rec');
    // Takes its place before the first await.
    const begun = this.begin(id, by);
    this.running.set(
      id,
      begun.then(
        () => this.go(id),
        () => void this.running.delete(id),
      ),
    );
    await begun;
    return { id };
  }

  /** Error: not_found, also for text that PostgreSQL cannot compare with an id. */
  async get({ id }: { id: string }): Promise<ReconcileRun> {
    if (!isId('rec', id)) throw new RequestError('not_found', 'No such reconcile run.');
    const [row] = await query<Row>(
      this.dataSource,
      `SELECT id, state, started_at, beat_at < now() - $2 * interval '1 millisecond' AS dead, progress, report, reason
       FROM reconcile_run
       WHERE id = $1`,
      [id, DEAD_AFTER_MS],
    );
    if (!row) throw new RequestError('not_found', 'No such reconcile run.');
    const run = { id, startedAt: row.started_at.toISOString() };
    if (row.state === 'done') return { ...run, state: 'done', report: row.report! };
    if (row.state === 'failed') return { ...run, state: 'failed', reason: row.reason! };
    if (row.dead) return { ...run, state: 'failed', reason: 'The process of this run has ended: start another run.' };
    return { ...run, state: 'running', ...row.progress };
  }

  /** The run that started last, on any replica. It is kept until another one starts. Null: it never ran. */
  async latest(): Promise<ReconcileRun | null> {
    const [row] = await query<{ id: string }>(
      this.dataSource,
      'SELECT id FROM reconcile_run ORDER BY started_at DESC, id DESC LIMIT 1',
    );
    return row ? this.get(row) : null;
  }

  /** What the newest complete run found, on any replica. 0: no run was complete. */
  async differences(): Promise<number> {
    const [row] = await query<Pick<Row, 'progress'>>(this.dataSource, NEWEST_DONE);
    return row?.progress.differenceCount ?? 0;
  }

  /** Ends each run at its next step. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort(new UnavailableError('the process of this run is stopping: start another run'));
    await Promise.all(this.running.values());
  }

  private async begin(id: string, by: Author | undefined): Promise<void> {
    await query(
      this.dataSource,
      `DELETE FROM reconcile_run
       WHERE started_at < now() - $1 * interval '1 millisecond'
         AND id NOT IN (SELECT id FROM (${NEWEST_DONE}) newest)`,
      [KEPT_MS],
    );
    await transaction(this.dataSource, async (tx) => {
      await query(tx, `INSERT INTO reconcile_run (id, state, progress) VALUES ($1, 'running', $2)`, [
        id,
        progress(new Findings()),
      ]);
      await recordChange(tx, by, { action: 'reconcile.start', target: id });
    });
  }

  /** Never rejects: the row says how the run ended. */
  private async go(id: string): Promise<void> {
    const findings = new Findings();
    const beat = setInterval(() => void this.write(id, findings, 'running'), BEAT_MS);
    try {
      await this.reconciler.run(findings, this.stopping.signal);
      await this.write(id, findings, 'done');
      countRun(findings.differenceCount);
    } catch (error) {
      countRun(null);
      const known = error instanceof UnavailableError;
      if (!known) logger('billing').error({ err: error, run: id }, 'reconcile failed');
      await this.write(id, findings, 'failed', known ? error.message : 'The run failed: see the log of billing.');
    } finally {
      clearInterval(beat);
      this.running.delete(id);
    }
  }

  private async write(
    id: string,
    findings: Findings,
    state: Row['state'],
    reason: string | null = null,
  ): Promise<void> {
    try {
      await query(
        this.dataSource,
        `UPDATE reconcile_run
         SET state = $2, beat_at = now(), progress = $3, report = $4, reason = $5
         WHERE id = $1 AND state = 'running'`,
        [id, state, progress(findings), state === 'done' ? JSON.stringify(findings.report()) : null, reason],
      );
    } catch (error) {
      // The next heartbeat makes up for a lost one. A run whose end could not be written is found dead.
      logger('billing').warn({ err: error, run: id }, 'the state of a reconcile run could not be written');
    }
  }
}

function progress({ events, tenants, differenceCount }: Findings): string {
  return JSON.stringify({ events, tenants, differenceCount });
}
