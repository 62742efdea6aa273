import type { BeforeApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { PriceStamp, UsageDraft } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { logger, stampPrice, type ConfigSource, type TollgateConfig } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import type { Prices } from '../price/prices';

/** Anyone who can publish events can name any version, so the sources are read at most this often. */
const LOOK_EVERY_MS = 1_000;
const SAVE_AGAIN_MS = 1_000;

type ModelKind = 'chat' | 'embedding';

interface Row {
  model: string;
  kind: ModelKind;
  stamp: PriceStamp;
}

interface StoredRow {
  model: string;
  kind: ModelKind;
  version: string;
  input_femtos: string;
  cached_input_femtos: string;
  output_femtos: string;
  request_nanos: string;
}

/**
 * Every price that `tollgate.yaml` had while any metering was running, by model and version: in memory for the hot
 * path, and in the table `price_version` for ever. Each replica adds the prices of its configuration, at the start and
 * at every change. It finds prices of other replicas when an event names them. It never adds a price from an event.
 */
export class PriceVersions implements Prices, OnModuleInit, BeforeApplicationShutdown {
  private readonly known = new Map<string, PriceStamp>();
  /** In the configuration, but not in the table yet. */
  private unsaved: Row[] = [];
  private timer: NodeJS.Timeout | undefined;
  private saving: Promise<void> = Promise.resolve();
  private stopped = false;
  private lookedAtMs = -Infinity;
  private readonly listeners: ((versions: readonly string[]) => void)[] = [];

  /** @param config absent: nothing is added to the table */
  constructor(
    private readonly dataSource: DataSource,
    private readonly config?: ConfigSource,
    private readonly lookEveryMs = LOOK_EVERY_MS,
  ) {}

  /** Rejects when the database does: without prices nothing can be rated. */
  async onModuleInit(): Promise<void> {
    // Before anything is awaited: the file may change meanwhile.
    this.config?.onChange((config) => {
      this.learn(config);
      this.saving = this.saving.then(() => this.save()).catch((error: unknown) => this.saveLater(error));
    });
    await this.load();
    if (!this.config) return;
    this.learn(this.config.current);
    await this.save();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.saving;
  }

  /** The listener is called with versions that were unknown before, once they are known. */
  onNew(listener: (versions: readonly string[]) => void): void {
    this.listeners.push(listener);
  }

  /** All known versions. */
  all(): string[] {
    return [...new Set([...this.known.values()].map(({ version }) => version))];
  }

  find({ model, kind, price }: Pick<UsageDraft, 'model' | 'kind' | 'price'>): PriceStamp | undefined {
    return this.known.get(place(model, kind === 'embedding' ? 'embedding' : 'chat', price.version));
  }

  async lookAgain(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs - this.lookedAtMs < this.lookEveryMs) return false;
    this.lookedAtMs = nowMs;
    const before = this.known.size;
    // A gateway may have read the file before us.
    await this.config?.refresh();
    await this.load();
    return this.known.size > before;
  }

  private learn({ models }: TollgateConfig): void {
    const rows = models.map(({ id, kind, price }) => ({ model: id, kind, stamp: stampPrice(price, kind) }));
    this.unsaved.push(...this.add(rows));
  }

  /** The new ones among them. */
  private add(rows: readonly Row[]): Row[] {
    const fresh = rows.filter(({ model, kind, stamp }) => !this.known.has(place(model, kind, stamp.version)));
    for (const { model, kind, stamp } of fresh) this.known.set(place(model, kind, stamp.version), stamp);
    const versions = [...new Set(fresh.map(({ stamp }) => stamp.version))];
    if (versions.length > 0) for (const listener of this.listeners) listener(versions);
    return fresh;
  }

  private async load(): Promise<void> {
    const rows = await query<StoredRow>(
      this.dataSource,
      `SELECT model, kind, version, input_femtos, cached_input_femtos, output_femtos, request_nanos FROM price_version`,
    );
    this.add(
      rows.map(({ model, kind, ...row }) => ({
        model,
        kind,
        stamp: {
          version: row.version,
          inputFemtos: row.input_femtos,
          cachedInputFemtos: row.cached_input_femtos,
          outputFemtos: row.output_femtos,
          requestNanos: row.request_nanos,
        },
      })),
    );
  }

  private async save(): Promise<void> {
    const rows = this.unsaved;
    if (rows.length === 0) return;
    const column = (of: (row: Row) => string) => rows.map(of);
    await query(
      this.dataSource,
      `INSERT INTO price_version (model, kind, version, input_femtos, cached_input_femtos, output_femtos, request_nanos)
       SELECT *
       FROM unnest($1::text[], $2::inference_kind[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
         AS given
       ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`,
      [
        column(({ model }) => model),
        column(({ kind }) => kind),
        column(({ stamp }) => stamp.version),
        column(({ stamp }) => stamp.inputFemtos),
        column(({ stamp }) => stamp.cachedInputFemtos),
        column(({ stamp }) => stamp.outputFemtos),
        column(({ stamp }) => stamp.requestNanos),
      ],
    );
    this.unsaved = this.unsaved.filter((row) => !rows.includes(row));
  }

  private saveLater(error: unknown): void {
    logger('metering').warn({ err: error }, 'the prices of the configuration could not be stored; retrying');
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.saving = this.saving.then(() => this.save()).catch((again: unknown) => this.saveLater(again));
    }, SAVE_AGAIN_MS);
  }
}

/** Unique: a model of the configuration has no space in it, and a version is hexadecimal. */
function place(model: string, kind: ModelKind, version: string): string {
  return `${kind} ${version} ${model}`;
}
