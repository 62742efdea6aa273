import type { UnavailableError } from '@tollgate/contracts';
import { StartError } from '@tollgate/runtime';
import { Cluster, type Redis } from 'ioredis';
import { afterReading, Breaker, within } from './breaker';
import type { Call, Reply } from './call';
import { assertNoEviction } from './eviction';
import type { FunctionLibrary } from './function-library';
import { LibraryLoader } from './library-loader';
import {
  connectionProblem,
  isFunctionMissing,
  isLoadingForbidden,
  isRefusal,
  isRightMissing,
  newerReason,
  startProblem,
  unavailable,
} from './redis-errors';
import { Shards, SINGLE } from './shards';
import { describeTarget, openClient, readRedisUrl, type NatMap, type RedisClient, type RedisTarget } from './target';

/**
 * A call without an answer by then is refused. With the caller's repeat, refused at once, it takes less than a second.
 */
export const CALL_TIMEOUT_MS = 700;
const START_TIMEOUT_MS = 3_000;
const LOAD_TIMEOUT_MS = 2_000;

export interface RedisLinkOptions {
  /** See `readRedisUrl`. */
  url: string;
  /** Shown in CLIENT LIST. */
  name: string;
  library?: FunctionLibrary;
  /** A call of the library that changes nothing. The start fails if the user may not make it. */
  probe?: Call;
  callTimeoutMs?: number;
  natMap?: NatMap;
}

/**
 * A connection to Redis (or one to each master of a cluster) that answers in bounded time. All commands of a call are
 * sent together, and each gets its reply or an UnavailableError. After one missed answer, a shard is refused at once
 * until it answers a probe. A lost connection is refused at once until it is back.
 *
 * The library is loaded wherever Redis lacks it (a new server or shard, FUNCTION FLUSH): a missing function loads it
 * and is called again. A user that may not load functions gets UnavailableError until a `LibraryKeeper` has loaded it.
 */
export class RedisLink {
  readonly client: RedisClient;
  private readonly target: RedisTarget;
  private readonly breakers = new Map<string, Breaker>();
  private readonly callTimeoutMs: number;
  private readonly loader: LibraryLoader;
  private readonly shards: Shards;
  private lastError: Error | undefined;

  constructor(private readonly options: RedisLinkOptions) {
    this.target = readRedisUrl(options.url);
    this.callTimeoutMs = options.callTimeoutMs ?? CALL_TIMEOUT_MS;
    this.client = openClient(this.target, options.name, options.natMap);
    this.shards = new Shards(this.client);
    this.loader = new LibraryLoader(options.library, () => this.shards.masters());
    const note = (error: Error) => (this.lastError = newerReason(this.lastError, error));
    this.client.on('error', note);
    this.client.on('node error', note);
  }

  /**
   * Connects and loads the library. Rejects with a StartError, which names the setting and the cure, when no server
   * answers, when it evicts keys, or when credentials, rights or version are wrong.
   */
  async start(): Promise<void> {
    const where = `REDIS_URL (${describeTarget(this.target)})`;
    this.client.connect().catch(() => {});
    await within(START_TIMEOUT_MS, this.ready());
    if (this.client.status !== 'ready') throw new StartError(`${where}: ${connectionProblem(this.lastError)}`);
    await assertNoEviction(this.shards.nodes(), this.callTimeoutMs, where);
    try {
      if (await this.isPrepared()) return;
      const failed = await this.loader.loadEverywhere(LOAD_TIMEOUT_MS);
      // A user that may not load the functions may find them loaded.
      if (failed && !(isLoadingForbidden(failed) && this.options.probe)) throw failed;
      await this.assertRights();
    } catch (error) {
      throw new StartError(`${where}: ${startProblem(error as Error)}`, { cause: error });
    }
  }

  /**
   * Resolves to one reply or Error for each call, in order, within `callTimeoutMs`. Loading a missing library uses what
   * remains of that time. Never rejects.
   */
  async call(calls: readonly Call[]): Promise<(Reply | Error)[]> {
    const replies: (Reply | Error)[] = new Array(calls.length);
    if (this.client.status !== 'ready') return replies.fill(unavailable('no connection'));
    const shards = new Map<string, number[]>();
    for (const [index, call] of calls.entries()) {
      const shard = this.shards.shardOf(call.keys[0]);
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

  /** Makes one call. Rejects with its Error. */
  async one(call: Call): Promise<Reply> {
    const [reply] = await this.call([call]);
    if (reply instanceof Error) throw reply;
    return reply;
  }

  /**
   * Rejects when the server does not answer now; in a cluster, when no master does. A master that answers is called
   * again from now on: a link that is ready must not refuse because of earlier silence.
   */
  async check(): Promise<void> {
    if (this.client.status !== 'ready') throw unavailable('no connection');
    const ping = async (node: Redis) => node.ping().then(() => this.breakers.get(this.shards.nameOf(node))?.close());
    const pings = Promise.any(this.shards.nodes().map(ping));
    pings.catch(() => {});
    if ((await within(this.callTimeoutMs, pings)) !== 'answered') throw unavailable('no answer in time');
  }

  /**
   * Waits until everything that this connection wrote to the masters of these keys has reached `count` replicas of
   * each. Asks no other masters. Resolves to undefined for each key, or to the UnavailableError of its shard after
   * `timeoutMs`. Never rejects. Later calls on these connections wait too. While a key moves to another master (ASK),
   * the old one is asked.
   */
  async waitForReplicas(
    keys: readonly string[],
    count: number,
    timeoutMs: number,
  ): Promise<(UnavailableError | undefined)[]> {
    const waits = new Map<string, Promise<UnavailableError | undefined>>();
    return Promise.all(
      keys.map((key) => {
        const shard = this.shards.shardOf(key);
        let wait = waits.get(shard);
        if (!wait) waits.set(shard, (wait = this.waitAt(shard, count, timeoutMs)));
        return wait;
      }),
    );
  }

  private async waitAt(shard: string, count: number, timeoutMs: number): Promise<UnavailableError | undefined> {
    const node = this.shards.node(shard);
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
    for (const node of this.shards.nodes()) node.stream?.destroy();
  }

  /**
   * Whether a single server has the functions already. Then no load is tried, which would be an entry in Redis's log of
   * refusals for a user without the right. In a cluster another master may lack them.
   */
  private async isPrepared(): Promise<boolean> {
    if (!this.options.probe || this.client instanceof Cluster) return false;
    const [reply] = await this.send(SINGLE, [this.options.probe], this.callTimeoutMs);
    if (reply instanceof Error && isRightMissing(reply)) throw reply;
    return !(reply instanceof Error);
  }

  /** A user may be allowed to load a function but not to use its keys. A silent shard says nothing about rights. */
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
      // Its master has it. While slots move to another master, that one answers.
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

  /** Sends all calls of one shard in one packet, by corking the stream. */
  private send(shard: string, calls: readonly Call[], timeoutMs: number): Promise<(Reply | Error)[]> {
    const replies: (Reply | Error)[] = new Array(calls.length);
    const breaker = this.breaker(shard, calls[0]!.keys[0]);
    if (breaker.isOpen) return Promise.resolve(replies.fill(unavailable('no answer lately')));
    const open = new Set<number>();
    let done = false;
    return new Promise((resolve) => {
      const giveUp = () => {
        if (done) return;
        // A shard that had less than the full time does not count as silent.
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
      const stream = this.shards.node(shard)?.stream;
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
      // The connection itself may be dead, or another node has taken over the shard.
      const onSilence = () => {
        this.shards.node(shard)?.stream?.destroy();
        if (this.client instanceof Cluster) this.client.refreshSlotsCache();
      };
      this.breakers.set(shard, (breaker = new Breaker(() => this.client.exists(key), onSilence)));
    }
    return breaker;
  }
}
