import type { UnavailableError } from '@tollgate/contracts';
import { StartError } from '@tollgate/runtime';
import { Cluster, type Redis } from 'ioredis';
import { afterReading, Breaker, within } from './breaker';
import type { FunctionLibrary } from './function-library';
import { LibraryLoader } from './library-loader';
import {
  innermost,
  isFunctionMissing,
  isLoadingForbidden,
  isRefusal,
  isRightMissing,
  reasonOf,
  startProblem,
  unavailable,
} from './redis-errors';
import { slotOf } from './slot';
import { describeTarget, openClient, readRedisUrl, type NatMap, type RedisClient, type RedisTarget } from './target';

/**
 * A call that is not answered by then is refused: with the second try of a caller, refused at once, well below a
 * second.
 */
export const CALL_TIMEOUT_MS = 700;
const START_TIMEOUT_MS = 3_000;
const LOAD_TIMEOUT_MS = 2_000;
const SINGLE = 'single';

/** One command; `keys` share a hash tag. A function is named without its library. */
export type Call =
  | { function: string; keys: readonly string[]; args: readonly (string | number)[] }
  | { command: string; keys: readonly [string]; args: readonly (string | number)[] };

/**
 * As ioredis gives it: strings, numbers, null, and arrays of these. An Error: this one failed; UnavailableError: Redis
 * did not answer, or cannot now.
 */
export type Reply = unknown;

export interface RedisLinkOptions {
  /** See `readRedisUrl`. */
  url: string;
  /** Shown in CLIENT LIST. */
  name: string;
  library?: FunctionLibrary;
  /** Asks for something of the library, and changes nothing: the start fails when it may not. */
  probe?: Call;
  callTimeoutMs?: number;
  natMap?: NatMap;
}

/**
 * A connection to Redis (or one to each master of a cluster) that answers in bounded time: all commands of a call leave
 * together, and each gets its reply or an UnavailableError. A shard that was silent once is refused at once until it
 * answers a probe; a lost connection likewise until it is back.
 *
 * The library is loaded where Redis does not have it (fresh, emptied by FUNCTION FLUSH, a new shard): a function that
 * is not found loads it there and is called again. A user that may not load functions gets UnavailableError until a
 * `LibraryKeeper` has done it.
 */
export class RedisLink {
  readonly client: RedisClient;
  private readonly target: RedisTarget;
  private readonly breakers = new Map<string, Breaker>();
  private readonly callTimeoutMs: number;
  private readonly loader: LibraryLoader;
  private lastError: Error | undefined;

  constructor(private readonly options: RedisLinkOptions) {
    this.target = readRedisUrl(options.url);
    this.callTimeoutMs = options.callTimeoutMs ?? CALL_TIMEOUT_MS;
    this.client = openClient(this.target, options.name, options.natMap);
    this.loader = new LibraryLoader(
      options.library,
      () => new Map(this.nodes().map((node) => [this.nameIn(node), node])),
    );
    this.client.on('error', (error: Error) => (this.lastError = error));
    this.client.on('node error', (error: Error) => (this.lastError = error));
  }

  /**
   * Connects and loads the library. Rejects with StartError when nobody answers there, or credentials, rights or
   * version are wrong: it names setting and cure.
   */
  async start(): Promise<void> {
    const where = `REDIS_URL (${describeTarget(this.target)})`;
    this.client.connect().catch(() => {});
    await within(START_TIMEOUT_MS, this.ready());
    const reason = this.lastError ? reasonOf(innermost(this.lastError)) : '';
    if (this.client.status !== 'ready') {
      if (/WRONGPASS|NOAUTH|invalid password|NOPERM/.test(reason))
        throw new StartError(`${where}: Redis refuses this user and password${reason}: correct them.`);
      throw new StartError(`${where}: Redis does not answer${reason}: start it, or correct the address.`);
    }
    try {
      if (await this.isPrepared()) return;
      const failed = await this.loader.loadEverywhere(LOAD_TIMEOUT_MS);
      // Whoever may not load them may find them there.
      if (failed && !(isLoadingForbidden(failed) && this.options.probe)) throw failed;
      await this.assertRights();
    } catch (error) {
      throw new StartError(`${where}: ${startProblem(error as Error)}`, { cause: error });
    }
  }

  /**
   * Never rejects: one reply or Error for each, in order, within `callTimeoutMs`: loading a library that is missing has
   * what is left of it.
   */
  async call(calls: readonly Call[]): Promise<(Reply | Error)[]> {
    const replies: (Reply | Error)[] = new Array(calls.length);
    if (this.client.status !== 'ready') return replies.fill(unavailable('no connection'));
    const shards = new Map<string, number[]>();
    for (const [index, call] of calls.entries()) {
      const shard = this.shardOf(call.keys[0]);
      const indexes = shards.get(shard);
      if (indexes) indexes.push(index);
      else shards.set(shard, [index]);
    }
    const asking = [...shards].map(async ([shard, indexes]) => {
      const answers = await this.callShard(
        shard,
        indexes.map((index) => calls[index]!),
      );
      for (const [n, index] of indexes.entries()) replies[index] = answers[n];
    });
    await Promise.all(asking);
    return replies;
  }

  /** One call; rejects with its Error. */
  async one(call: Call): Promise<Reply> {
    const [reply] = await this.call([call]);
    if (reply instanceof Error) throw reply;
    return reply;
  }

  /**
   * Rejects when nobody answers now; in a cluster, no master. Who does is called again at once: what is ready must not
   * refuse for what was.
   */
  async check(): Promise<void> {
    if (this.client.status !== 'ready') throw unavailable('no connection');
    const ping = async (node: Redis) => node.ping().then(() => this.breakers.get(this.nameIn(node))?.close());
    const pings = Promise.any(this.nodes().map(ping));
    pings.catch(() => {});
    if ((await within(this.callTimeoutMs, pings)) !== 'answered') throw unavailable('no answer in time');
  }

  /**
   * Waits until all that this connection wrote to the masters of these keys has reached so many replicas of each; other
   * masters are not asked. Never rejects: for each key, in order, undefined or the UnavailableError of its shard after
   * `timeoutMs`. What follows on these connections waits with it. A key in the middle of its move to another master
   * (ASK) is looked for at the old one.
   */
  async waitForReplicas(
    keys: readonly string[],
    count: number,
    timeoutMs: number,
  ): Promise<(UnavailableError | undefined)[]> {
    const waits = new Map<string, Promise<UnavailableError | undefined>>();
    return Promise.all(
      keys.map((key) => {
        const shard = this.shardOf(key);
        let wait = waits.get(shard);
        if (!wait) waits.set(shard, (wait = this.waitAt(shard, count, timeoutMs)));
        return wait;
      }),
    );
  }

  private async waitAt(shard: string, count: number, timeoutMs: number): Promise<UnavailableError | undefined> {
    const node = this.node(shard);
    if (!node) return unavailable('replicas were not reached: no connection');
    try {
      const wait = node.wait(count, timeoutMs);
      const reached = (await within(timeoutMs + this.callTimeoutMs, wait)) === 'silent' ? 0 : await wait;
      return reached < count ? unavailable(`only ${reached} of ${count} replicas were reached`) : undefined;
    } catch (error) {
      return unavailable('replicas were not reached', error as Error);
    }
  }

  close(): void {
    for (const breaker of this.breakers.values()) breaker.stop();
    this.client.disconnect();
    for (const node of this.nodes()) node.stream?.destroy();
  }

  /**
   * One server that has the functions already: who may not load any is not refused it, as whoever watches Redis's log
   * of refusals would see. A cluster may lack them at another master.
   */
  private async isPrepared(): Promise<boolean> {
    if (!this.options.probe || this.client instanceof Cluster) return false;
    const [reply] = await this.send(SINGLE, [this.options.probe], this.callTimeoutMs);
    if (reply instanceof Error && isRightMissing(reply)) throw reply;
    return !(reply instanceof Error);
  }

  /** A function may be loaded by who may not touch its keys. That its shard is silent says nothing about rights. */
  private async assertRights(): Promise<void> {
    if (!this.options.probe) return;
    const [reply] = await this.call([this.options.probe]);
    if (reply instanceof Error && isRightMissing(reply)) throw reply;
  }

  private ready(): Promise<void> {
    return new Promise((resolve) => this.client.once('ready', resolve));
  }

  private async callShard(shard: string, calls: readonly Call[]): Promise<(Reply | Error)[]> {
    const untilMs = performance.now() + this.callTimeoutMs;
    const leftMs = () => untilMs - performance.now();
    const replies = await this.send(shard, calls, this.callTimeoutMs);
    const loads = [
      () => this.loader.loadAt(shard, leftMs()),
      // Its master has it: while slots move to another one, that one answers.
      () => this.loader.loadEverywhere(leftMs()),
    ];
    for (const load of loads) {
      const missing = calls.flatMap((_, index) => (isFunctionMissing(replies[index]) ? index : []));
      if (missing.length === 0) return replies;
      const failed = await load();
      const answers = failed
        ? missing.map(() => unavailable(failed.message, failed))
        : await this.send(
            shard,
            missing.map((index) => calls[index]!),
            leftMs(),
          );
      for (const [n, index] of missing.entries()) replies[index] = answers[n];
    }
    return replies.map((reply) => (isFunctionMissing(reply) ? unavailable('its functions are missing') : reply));
  }

  /** All of one shard, in one packet: what is written while a stream is corked leaves together. */
  private send(shard: string, calls: readonly Call[], timeoutMs: number): Promise<(Reply | Error)[]> {
    const replies: (Reply | Error)[] = new Array(calls.length);
    const breaker = this.breaker(shard, calls[0]!.keys[0]);
    if (breaker.isOpen) return Promise.resolve(replies.fill(unavailable('no answer lately')));
    const open = new Set<number>();
    let done = false;
    return new Promise((resolve) => {
      const giveUp = () => {
        if (done) return;
        // A shard that had less than its time is not judged by it.
        if (timeoutMs >= this.callTimeoutMs) breaker.open();
        for (const index of open) replies[index] = unavailable('no answer in time');
        done = true;
        resolve(replies);
      };
      const timer = setTimeout(() => afterReading(giveUp), Math.max(0, timeoutMs));
      const settle = (index: number, reply: Reply | Error) => {
        if (done) return;
        replies[index] = reply;
        open.delete(index);
        if (open.size > 0) return;
        done = true;
        clearTimeout(timer);
        resolve(replies);
      };
      const stream = this.node(shard)?.stream;
      stream?.cork();
      for (const [index, call] of calls.entries()) {
        open.add(index);
        this.sendOne(call).then(
          (reply) => {
            if (breaker.isOpen) breaker.close();
            settle(index, reply);
          },
          (error: Error) => settle(index, isRefusal(error) ? unavailable(error.message, error) : error),
        );
      }
      stream?.uncork();
    });
  }

  private sendOne(call: Call): Promise<Reply> {
    if ('command' in call) return this.client.call(call.command, ...call.keys, ...call.args);
    const name = `${this.options.library!.name}_${call.function}`;
    return this.client.call('fcall', name, call.keys.length, ...call.keys, ...call.args);
  }

  private breaker(shard: string, key: string): Breaker {
    let breaker = this.breakers.get(shard);
    if (!breaker) {
      // The connection itself may be dead: a new one finds out. Or another node has taken the shard over.
      const onSilence = () => {
        this.node(shard)?.stream?.destroy();
        if (this.client instanceof Cluster) this.client.refreshSlotsCache();
      };
      this.breakers.set(shard, (breaker = new Breaker(() => this.client.exists(key), onSilence)));
    }
    return breaker;
  }

  /** In a cluster the master that serves the key, as far as is known. */
  private shardOf(key: string): string {
    if (!(this.client instanceof Cluster)) return SINGLE;
    return this.client.slots[slotOf(key)]?.[0] ?? SINGLE;
  }

  private nodes(): Redis[] {
    return this.client instanceof Cluster ? this.client.nodes('master') : [this.client];
  }

  private node(shard: string): Redis | undefined {
    return this.nodes().find((node) => shard === SINGLE || this.nameIn(node) === shard);
  }

  private nameIn({ options: { host, port } }: Redis): string {
    return this.client instanceof Cluster ? `${host}:${port}` : SINGLE;
  }
}
