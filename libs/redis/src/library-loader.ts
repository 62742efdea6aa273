import type { Redis } from 'ioredis';
import { within } from './breaker';
import type { FunctionLibrary } from './function-library';
import { unavailable } from './redis-errors';

/** Loads the library at masters, by their names. Concurrent loads at the same master share one. */
export class LibraryLoader {
  private readonly loading = new Map<string, Promise<void>>();

  constructor(
    private readonly library: FunctionLibrary | undefined,
    private readonly masters: () => ReadonlyMap<string, Redis>,
  ) {}

  /** Resolves to the reason if the library is not loaded within `timeoutMs`. */
  async loadAt(master: string, timeoutMs: number): Promise<Error | undefined> {
    const load = this.loading.get(master) ?? this.load(master).finally(() => this.loading.delete(master));
    this.loading.set(master, load);
    let failed: Error | undefined;
    const noted = load.catch((error: Error) => void (failed = error));
    if ((await within(Math.max(0, timeoutMs), noted)) === 'answered') return failed;
    return unavailable('no answer while loading its functions');
  }

  /**
   * Loads it at all masters, of which at least one must answer. Silent ones get it when they answer again. Resolves to
   * the error that a master replied, or to the failure of all.
   */
  async loadEverywhere(timeoutMs: number): Promise<Error | undefined> {
    const masters = [...this.masters().keys()];
    const loads = await Promise.all(masters.map((master) => this.loadAt(master, timeoutMs)));
    const failed = loads.filter((error) => error !== undefined);
    const refused = failed.find(({ name }) => name === 'ReplyError');
    return refused ?? (failed.length === masters.length ? failed[0] : undefined);
  }

  private async load(master: string): Promise<void> {
    if (!this.library) return;
    const masters = this.masters();
    // While another node takes a slot over, no master is known for it. Any master redirects the call.
    const node = masters.get(master) ?? [...masters.values()][0];
    if (!node) throw unavailable('no connection');
    try {
      await node.call('function', 'LOAD', this.library.source);
    } catch (error) {
      if (!/already exists/.test((error as Error).message)) throw error;
    }
  }
}
