import { delayUntilAborted, logger, StartError } from '@tollgate/runtime';
import { Cluster, type Redis } from 'ioredis';
import { within } from './breaker';
import type { FunctionLibrary } from './function-library';
import { connectionProblem, isRightMissing, newerReason } from './redis-errors';
import { describeTarget, openClient, readRedisUrl, type RedisClient } from './target';

const KEEP_INTERVAL_MS = 500;
const START_TIMEOUT_MS = 3_000;
/** The time limit of one check of all masters, including missing loads. */
const LOOK_TIMEOUT_MS = 5_000;

export interface LibraryKeeperOptions {
  /** See `readRedisUrl`. */
  url: string;
  libraries: readonly FunctionLibrary[];
}

/**
 * Loads function libraries at every master, and keeps checking that they exist. For services whose users may not load
 * any: a user's function runs with the rights of its caller, so a loaded or replaced one could misuse the rights of
 * other services.
 */
export class LibraryKeeper {
  private readonly client: RedisClient;
  private readonly where: string;
  private lastError: Error | undefined;
  private failing = false;

  constructor(private readonly options: LibraryKeeperOptions) {
    const target = readRedisUrl(options.url);
    this.where = `REDIS_URL (${describeTarget(target)})`;
    this.client = openClient(target, 'tollgate-functions');
    const note = (error: Error) => (this.lastError = newerReason(this.lastError, error));
    this.client.on('error', note);
    this.client.on('node error', note);
  }

  /** Connects and loads all libraries at all masters. Rejects with StartError, which names the cure. */
  async load(): Promise<void> {
    const ready = new Promise((resolve) => this.client.once('ready', resolve));
    this.client.connect().catch(() => {});
    await within(START_TIMEOUT_MS, ready);
    if (this.client.status !== 'ready') throw new StartError(`${this.where}: ${connectionProblem(this.lastError)}`);
    try {
      await this.look();
    } catch (error) {
      const { message } = error as Error;
      const cure = isRightMissing(error as Error)
        ? 'the user lacks rights: `tollgate redis rights functions` shows them'
        : 'the functions could not be loaded';
      throw new StartError(`${this.where}: ${cure} (${message}).`, { cause: error });
    }
  }

  /**
   * Runs until the signal. A missing library is loaded within KEEP_INTERVAL_MS of its master's next answer. Never
   * rejects.
   */
  async keep(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await delayUntilAborted(KEEP_INTERVAL_MS, stop);
      if (stop.aborted) return;
      try {
        if (this.client instanceof Cluster) this.client.refreshSlotsCache();
        await this.look();
        if (this.failing) logger('functions').info('Redis answers again, and has all functions');
        this.failing = false;
      } catch (error) {
        if (!this.failing)
          logger('functions').warn(
            { reason: (error as Error).message },
            'checking the functions in Redis failed; retrying',
          );
        this.failing = true;
      }
    }
  }

  close(): void {
    this.client.disconnect();
  }

  /** Rejects when a master does not answer in time, or has another source under the name of one of our libraries. */
  private async look(): Promise<void> {
    const masters = this.client instanceof Cluster ? this.client.nodes('master') : [this.client];
    const all = Promise.all(masters.flatMap((node) => this.options.libraries.map((library) => keepAt(node, library))));
    if ((await within(LOOK_TIMEOUT_MS, all)) === 'silent') throw new Error(`no answer within ${LOOK_TIMEOUT_MS} ms`);
    await all;
  }
}

async function keepAt(node: Redis, { name, source }: FunctionLibrary): Promise<void> {
  const reply = await node.call('function', 'LIST', 'LIBRARYNAME', name, 'WITHCODE');
  const [found] = reply as (string | unknown[])[][];
  if (!found) {
    await node.call('function', 'LOAD', source).catch((error: Error) => {
      if (!/already exists/.test(error.message)) throw error;
    });
    logger('functions').info({ library: name }, 'functions were loaded');
  } else if (found[found.indexOf('library_code') + 1] !== source) {
    throw new Error(`the library ${name} is not ours: someone replaced it. Find out who, then FUNCTION DELETE ${name}`);
  }
}
