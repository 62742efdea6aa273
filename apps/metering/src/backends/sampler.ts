import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { query, transaction } from '@tollgate/postgres';
import { Counter, logger, metrics, PeriodicTask } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import { HOUR_MS, hourOf } from '../hours';
import { type EngineReading, readEngine } from './engine-page';
import type { Engine } from './engines';

/** At every full minute, and so at every full hour. */
const SAMPLE_EVERY_MS = 60_000;
/**
 * A sample this close to the end of an hour counts as taken at the end. Under steady load that is a quarter of a
 * percent of the hour, and drift is reported from one percent.
 */
export const EDGE_SLACK_MS = 10_000;
/** The stated or computed start of a process varies a little. */
const SAME_START_MS = 2_000;
const NOTHING = { promptTokens: 0, generationTokens: 0, restarts: 0 };

const samples = new Counter({
  name: 'tollgate_backend_samples_total',
  help: 'Readings of the engines’ metrics pages, by result: read, failed',
  labelNames: ['backend', 'result'] as const,
  registers: [metrics],
});

interface Stored {
  sampled_at: Date;
  started_at: Date | null;
  prompt_tokens: string;
  generation_tokens: string;
}

/** An engine's work in a part of an hour, observed from `fromMs` to `toMs`. */
interface Part {
  hourMs: number;
  fromMs: number;
  toMs: number;
  promptTokens: number;
  generationTokens: number;
  restarts: number;
}

/**
 * Reads the engines' counters once a minute and stores their growth, hour by hour. Counters only grow, so a page that
 * does not answer for a while matters only at the end of an hour. If a counter has fallen, the engine has restarted:
 * its count since the last sample is lost, and the hour says so. An advisory lock lets one process in at a time.
 */
export class EngineSampler implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.sample(),
    failed: (error) => logger('metering').error({ err: error }, 'the engines were not sampled; retrying'),
    everyMs: () => SAMPLE_EVERY_MS - (Date.now() % SAMPLE_EVERY_MS),
  });
  /** Engines whose page failed at the last reading. Each is logged once. */
  private readonly silent = new Set<string>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly engines: () => readonly Engine[],
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  /** Finishes the current round, without the pages that have not answered yet. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  /** Runs one round. False if another process is running one. */
  async sample(nowMs = Date.now()): Promise<boolean> {
    const engines = this.engines();
    if (engines.length === 0) return true;
    return transaction(this.dataSource, async (tx) => {
      const [lock] = await query<{ mine: boolean }>(
        tx,
        `SELECT pg_try_advisory_xact_lock(hashtextextended('tollgate-metering-engines', 0)) AS mine`,
      );
      if (!lock!.mine) return false;
      const readings = await Promise.all(engines.map((engine) => this.read(engine)));
      for (const [i, engine] of engines.entries()) await record(tx, engine, readings[i]!, nowMs);
      return true;
    });
  }

  /** Null if it cannot be read. */
  private async read({ name, url, backends }: Engine): Promise<EngineReading | null> {
    const backend = backends.join(' ');
    try {
      const reading = await readEngine(url, { stopped: this.task.ending });
      samples.inc({ backend, result: 'read' });
      this.silent.delete(name);
      return reading;
    } catch (error) {
      if (this.task.ending.aborted) return null;
      samples.inc({ backend, result: 'failed' });
      const { message, cause } = error as Error & { cause?: { code?: unknown } };
      if (!this.silent.has(name))
        logger('metering').warn(
          { engine: name, reason: cause?.code ?? message },
          'an engine’s counters cannot be read',
        );
      this.silent.add(name);
      return null;
    }
  }
}

async function record(tx: EntityManager, engine: Engine, reading: EngineReading | null, nowMs: number): Promise<void> {
  if (reading === null) {
    // The row shows that this hour has no evidence.
    await query(
      tx,
      `INSERT INTO engine_hour (hour, engine, backends, counts_cached, prompt_tokens, generation_tokens, restarts)
       VALUES ($1, $2, $3, true, 0, 0, 0) ON CONFLICT DO NOTHING`,
      [new Date(hourOf(nowMs)), engine.name, engine.backends],
    );
    return;
  }
  const [last] = await query<Stored>(
    tx,
    'SELECT sampled_at, started_at, prompt_tokens, generation_tokens FROM engine_sample WHERE engine = $1',
    [engine.name],
  );
  // Clocks of two replicas may differ a little. Samples follow the order of the lock.
  const atMs = Math.max(nowMs, last?.sampled_at.getTime() ?? 0);
  for (const part of parts(last, reading, atMs)) await addPart(tx, engine, reading.countsCached, part);
  await query(
    tx,
    `INSERT INTO engine_sample (engine, sampled_at, started_at, prompt_tokens, generation_tokens)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (engine) DO UPDATE SET sampled_at = excluded.sampled_at, started_at = excluded.started_at,
       prompt_tokens = excluded.prompt_tokens, generation_tokens = excluded.generation_tokens`,
    [
      engine.name,
      new Date(atMs),
      reading.startedMs === null ? null : new Date(reading.startedMs),
      reading.promptTokens,
      reading.generationTokens,
    ],
  );
}

/**
 * The work since the last sample, by hour. Across the end of an hour it is known only from a sample near to it.
 * Otherwise it goes to the new hour, and neither hour counts as observed at that end. If the whole hour before had no
 * sample and this one is near its end, the new hour is observed from now on: the work since the last sample belongs to
 * no hour. Counted in the new one, it would be a drift.
 */
function parts(last: Stored | undefined, reading: EngineReading, nowMs: number): Part[] {
  const hourMs = hourOf(nowMs);
  if (!last) return [{ hourMs, fromMs: nowMs, toMs: nowMs, ...NOTHING }];
  const lastMs = last.sampled_at.getTime();
  const restarted = hasRestarted(last, reading);
  const done = {
    promptTokens: reading.promptTokens - (restarted ? 0 : Number(last.prompt_tokens)),
    generationTokens: reading.generationTokens - (restarted ? 0 : Number(last.generation_tokens)),
    restarts: restarted ? 1 : 0,
  };
  if (lastMs >= hourMs) return [{ hourMs, fromMs: lastMs, toMs: nowMs, ...done }];
  const before = hourMs - HOUR_MS;
  if (lastMs >= before && nowMs - hourMs <= EDGE_SLACK_MS)
    return [
      { hourMs: before, fromMs: lastMs, toMs: hourMs, ...done },
      { hourMs, fromMs: hourMs, toMs: nowMs, ...NOTHING },
    ];
  if (lastMs >= hourMs - EDGE_SLACK_MS)
    return [
      { hourMs: before, fromMs: lastMs, toMs: hourMs, ...NOTHING, restarts: done.restarts },
      { hourMs, fromMs: hourMs, toMs: nowMs, ...done },
    ];
  const isObserved = nowMs - hourMs <= EDGE_SLACK_MS;
  return [{ hourMs, fromMs: nowMs, toMs: nowMs, ...(isObserved ? NOTHING : done) }];
}

function hasRestarted(last: Stored, { promptTokens, generationTokens, startedMs }: EngineReading): boolean {
  if (promptTokens < Number(last.prompt_tokens) || generationTokens < Number(last.generation_tokens)) return true;
  return startedMs !== null && last.started_at !== null && startedMs - last.started_at.getTime() > SAME_START_MS;
}

async function addPart(tx: EntityManager, engine: Engine, countsCached: boolean, part: Part): Promise<void> {
  await query(
    tx,
    `INSERT INTO engine_hour AS stored (hour, engine, backends, counts_cached, first_at, last_at, prompt_tokens,
       generation_tokens, restarts)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (hour, engine) DO UPDATE SET
       backends = ARRAY(SELECT DISTINCT name FROM unnest(stored.backends || excluded.backends) AS name ORDER BY name),
       counts_cached = excluded.counts_cached,
       first_at = least(stored.first_at, excluded.first_at),
       last_at = greatest(stored.last_at, excluded.last_at),
       prompt_tokens = stored.prompt_tokens + excluded.prompt_tokens,
       generation_tokens = stored.generation_tokens + excluded.generation_tokens,
       restarts = stored.restarts + excluded.restarts`,
    [
      new Date(part.hourMs),
      engine.name,
      engine.backends,
      countsCached,
      new Date(part.fromMs),
      new Date(part.toMs),
      part.promptTokens,
      part.generationTokens,
      part.restarts,
    ],
  );
}
