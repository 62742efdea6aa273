import { logger } from '../logging/logging';
import { Gauge, metrics } from './metrics';
import { withTimeout } from '../timing';

/** The longest wait of a scrape for a source. A late value is left out. */
const SOURCE_TIMEOUT_MS = 1_000;

export interface Reading<L extends string> {
  labels: Record<L, string>;
  value: number;
}

/** A number: the value of a gauge without labels. Rejects when it has no value at the moment. */
export type Source<L extends string> = () => Promise<number | readonly Reading<L>[]>;

/**
 * A gauge whose values are read only when it is scraped, so it costs nothing otherwise. A source that fails has no
 * value: none is better than an old one.
 */
export class PolledGauge<L extends string = never> {
  private readonly sources = new Set<Source<L>>();

  /** @param options `aggregator`: how the values of workers become one; by default they read the same values */
  constructor(options: { name: string; help: string; labelNames?: readonly L[]; aggregator?: 'max' | 'min' }) {
    const { name, help, labelNames = [], aggregator = 'max' } = options;
    const sources = this.sources;
    new Gauge<L>({
      name,
      help,
      labelNames,
      aggregator,
      registers: [metrics],
      async collect() {
        const readings = await Promise.all([...sources].map((source) => ask(name, source)));
        this.reset();
        for (const { labels, value } of readings.flat()) this.set(labels, value);
      },
    });
  }

  /** Reads this source until the returned function is called. */
  from(source: Source<L>): () => void {
    this.sources.add(source);
    return () => this.sources.delete(source);
  }
}

async function ask<L extends string>(name: string, source: Source<L>): Promise<readonly Reading<L>[]> {
  try {
    const read = await withTimeout(SOURCE_TIMEOUT_MS, source());
    return typeof read === 'number' ? [{ labels: {} as Record<L, string>, value: read }] : read;
  } catch (error) {
    logger('metrics').debug({ err: error, name }, 'reading a value failed');
    return [];
  }
}
