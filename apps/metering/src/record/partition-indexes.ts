import { Injectable, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { query, sqlState, withStatementTimeout } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { MeteringDataSource } from '../database';

const RETRY_MS = 60_000;
/** A month of 100 million events takes about a minute. */
const BUILD_TIMEOUT_MS = 30 * 60_000;
/** More partitions than there can be months. */
const MAX_PARTITIONS = 2_500;

/**
 * Adds to the months of `usage_event` an index that a later version brought, in the background: a process is ready
 * without it, and queries that would use it take longer until then. Each month is built in its own transaction,
 * newest first. Any number of processes may do it at once: one of them builds, and the others look again later.
 */
@Injectable()
export class PartitionIndexes implements OnModuleInit, BeforeApplicationShutdown {
  private isDone = false;
  private readonly task = new PeriodicTask({
    run: () => this.complete(),
    failed: (error) => this.failed(error),
    everyMs: () => (this.isDone ? null : RETRY_MS),
  });

  constructor(private readonly dataSource: MeteringDataSource) {}

  /** Does not wait for the indexes. */
  onModuleInit(): void {
    this.task.start();
  }

  /** An unfinished build is aborted, and begins again after the next start. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop(new Error('metering is stopping'));
  }

  /** Builds what is missing, and returns the names of the partitions that it was built for. */
  async ensure(): Promise<string[]> {
    const built: string[] = [];
    while (built.length < MAX_PARTITIONS && !this.task.ending.aborted) {
      const name = await this.buildNext();
      if (name === null) break;
      built.push(name);
    }
    return built;
  }

  private buildNext(): Promise<string | null> {
    return this.dataSource.transaction(async (tx) => {
      const run = await withStatementTimeout(tx, BUILD_TIMEOUT_MS, this.task.ending);
      const [row] = await run<{ name: string | null }>('SELECT index_partition() AS name', []);
      return row!.name;
    });
  }

  /** Runs until no partition lacks the index. */
  private async complete(): Promise<void> {
    const built = await this.ensure();
    if (built.length > 0) logger('metering').info({ partitions: built }, 'indexes of usage_event were added');
    this.isDone = await this.isComplete();
  }

  private failed(error: unknown): void {
    logger('metering').warn(
      { err: error, sqlState: sqlState(error) },
      'an index of usage_event could not be built; retrying',
    );
  }

  /** PostgreSQL marks the index of the whole table as valid once every partition has its part. */
  private async isComplete(): Promise<boolean> {
    const rows = await query(
      this.dataSource,
      `SELECT FROM pg_index WHERE indexrelid = 'usage_event_unfinished'::regclass AND indisvalid`,
    );
    return rows.length > 0;
  }
}
