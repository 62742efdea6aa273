import { UnavailableError } from '@tollgate/contracts';
import { StartError } from '@tollgate/runtime';
import { Cluster, type Redis } from 'ioredis';
import { afterReading, Breaker, within } from './breaker';
import type { FunctionLibrary } from './function-library';
import { describeTarget, openClient, readRedisUrl, type NatMap, type RedisClient, type RedisTarget } from './target';

/** A call that is not answered by then is refused: with the second try of a caller, refused at once, well below a second. */
export const CALL_TIMEOUT_MS = 700;
const START_TIMEOUT_MS = 3_000;
const LOAD_TIMEOUT_MS = 2_000;
const SINGLE = 'single';

/** One command; `keys` share a hash tag. A function is named without its library. */
export type Call =
  | { function: string; keys: readonly string[]; args: readonly (string | number)[] }
  | { command: string; keys: readonly [string]; args: readonly (string | number)[] };

/** As ioredis gives it: strings, numbers, null, and arrays of these. An Error: this one failed; UnavailableError: Redis did not answer, or cannot now. */
export type Reply = unknown;

export interface RedisLinkOptions {
  /** See `readRedisUrl`. */
  url: string;
  /** Shown in CLIENT LIST. */
  name: string;
  library?: FunctionLibrary;
  callTimeoutMs?: number;
  natMap?: NatMap;
}

/**
 * A connection to Redis (or one to each master of a cluster) that answers in bounded time: all commands of a call leave together, and each gets its reply or an
 * UnavailableError. A shard that was silent once is refused at once until it answers a probe; a lost connection likewise until it is back.
 *
 * The library is loaded when Redis does not have it (fresh, emptied by FUNCTION FLUSH, a new shard): a function that is not found loads it and is called again.
 */
export class RedisLink {
  readonly client: RedisClient;
  private readonly target: RedisTarget;
  private readonly breakers = new Map<string, Breaker>();
  private readonly callTimeoutMs: number;
  private loading: Promise<void> | undefined;
  private lastError: Error | undefined;

  constructor(private readonly options: RedisLinkOptions) {
    this.target = readRedisUrl(options.url);
    this.callTimeoutMs = options.callTimeoutMs ?? CALL_TIMEOUT_MS;
    this.client = openClient(this.target, options.name, options.natMap);
    this.client.on('error', (error: Error) => (this.lastError = error));
    this.client.on('node error', (error: Error) => (this.lastError = error));
  }

  /** Connects and loads the library. Rejects with StartError when nobody answers there, or credentials, rights or version are wrong: it names setting and cure. */
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
      await this.loadLibrary();
    } catch (error) {
      const { message } = error as Error;
      if (/unknown command/i.test(message))
        throw new StartError(`${where}: this server has no Functions: Redis 7.0 or newer is needed.`, { cause: error });
      if (/NOPERM|NOAUTH/.test(message))
        throw new StartError(
          `${where}: the user lacks rights (${message}): it needs ~tga:* ~tgc:* &tgc:* +@all -@admin -@dangerous +function +info.`,
          { cause: error },
        );
      throw new StartError(`${where}: Redis does not take our functions (${message}).`, { cause: error });
    }
  }

  /** Never rejects: one reply or Error for each, in order. */
  async call(calls: readonly Call[]): Promise<(Reply | Error)[]> {
    const replies = await this.send(calls);
    const missing = calls.flatMap((_, index) => (isFunctionMissing(replies[index]) ? index : []));
    if (missing.length === 0) return replies;
    const loaded = await this.loadLibrary().catch((error: Error) => error);
    const again = loaded
      ? missing.map(() => unavailable(loaded.message))
      : await this.send(missing.map((index) => calls[index]!));
    for (const [n, index] of missing.entries()) replies[index] = again[n];
    return replies;
  }

  /** One call; rejects with its Error. */
  async one(call: Call): Promise<Reply> {
    const [reply] = await this.call([call]);
    if (reply instanceof Error) throw reply;
    return reply;
  }

  /** Rejects when nobody answers now; in a cluster, no master. */
  async check(): Promise<void> {
    if (this.client.status !== 'ready') throw unavailable('no connection');
    const pings = Promise.any(this.nodes().map((node) => node.ping()));
    pings.catch(() => {});
    if ((await within(this.callTimeoutMs, pings)) !== 'answered') throw unavailable('no answer in time');
  }

  /** Returns when all that this connection wrote has reached so many replicas (of each master); rejects with UnavailableError after `timeoutMs`. What follows on this connection waits with it. */
  async waitForReplicas(count: number, timeoutMs: number): Promise<void> {
    const waits = Promise.all(this.nodes().map((node) => node.wait(count, timeoutMs)));
    let reached: number[];
    try {
      const state = await within(timeoutMs + this.callTimeoutMs, waits);
      reached = state === 'silent' ? [0] : await waits;
    } catch (error) {
      throw unavailable('replicas were not reached', error as Error);
    }
    if (Math.min(...reached) < count)
      throw unavailable(`only ${Math.min(...reached)} of ${count} replicas were reached`);
  }

  close(): void {
    for (const breaker of this.breakers.values()) breaker.stop();
    this.client.disconnect();
    for (const node of this.nodes()) node.stream?.destroy();
  }

  private ready(): Promise<void> {
    return new Promise((resolve) => this.client.once('ready', resolve));
  }

  private send(calls: readonly Call[]): Promise<(Reply | Error)[]> {
    if (calls.length === 0) return Promise.resolve([]);
    const replies: (Reply | Error)[] = new Array(calls.length);
    const shards = new Map<string, { breaker: Breaker; open: Set<number> }>();
    let left = calls.length;
    let done = false;
    if (this.client.status !== 'ready') return Promise.resolve(replies.fill(unavailable('no connection')));
    return new Promise((resolve) => {
      const giveUp = () => {
        if (left === 0) return;
        for (const { breaker, open } of shards.values()) {
          if (open.size > 0) breaker.open();
          for (const index of open) replies[index] = unavailable('no answer in time');
        }
        done = true;
        resolve(replies);
      };
      const timer = setTimeout(() => afterReading(giveUp), this.callTimeoutMs);
      const settle = (index: number, shard: { open: Set<number> } | undefined, reply: Reply | Error) => {
        shard?.open.delete(index);
        if (done) return;
        replies[index] = reply;
        if (--left > 0) return;
        clearTimeout(timer);
        resolve(replies);
      };
      // One packet for all: what is written while a stream is corked leaves together.
      const streams = this.nodes().map((node) => node.stream);
      for (const stream of streams) stream?.cork();
      for (const [index, call] of calls.entries()) {
        const name = this.shardOf(call.keys[0]!);
        let shard = shards.get(name);
        if (!shard) shards.set(name, (shard = { breaker: this.breaker(name, call.keys[0]!), open: new Set() }));
        if (shard.breaker.isOpen) {
          queueMicrotask(() => settle(index, undefined, unavailable('no answer lately')));
          continue;
        }
        shard.open.add(index);
        const { breaker } = shard;
        this.sendOne(call).then(
          (reply) => {
            if (breaker.isOpen) breaker.close();
            settle(index, shard, reply);
          },
          (error: Error) => settle(index, shard, isRefusal(error) ? unavailable(error.message, error) : error),
        );
      }
      for (const stream of streams) stream?.uncork();
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
    return this.nodes().find(({ options }) => shard === SINGLE || `${options.host}:${options.port}` === shard);
  }

  /** All who miss it at the same time load it once. */
  private loadLibrary(): Promise<void> {
    this.loading ??= this.loadEverywhere().finally(() => (this.loading = undefined));
    return this.loading;
  }

  private async loadEverywhere(): Promise<void> {
    const { library } = this.options;
    if (!library) return;
    const loads = this.nodes().map(async (node) => {
      try {
        await node.call('function', 'LOAD', library.source);
      } catch (error) {
        if (!/already exists/.test((error as Error).message)) throw error;
      }
    });
    const all = Promise.all(loads);
    if ((await within(LOAD_TIMEOUT_MS, all)) === 'silent') throw unavailable('no answer while loading its functions');
    await all;
  }
}

function unavailable(reason: string, cause?: Error): UnavailableError {
  const error = new UnavailableError(`Redis is not available: ${reason}`);
  return cause ? Object.assign(error, { cause }) : error;
}

/** What Redis or the connection refuses for now, in contrast to a mistake of ours (`ERR …`). */
function isRefusal(error: Error): boolean {
  return error.name !== 'ReplyError' || !/^ERR |^WRONGTYPE/.test(error.message);
}

function isFunctionMissing(reply: Reply | Error): boolean {
  return reply instanceof Error && /^ERR Function not found/.test(reply.message);
}

/** That a connection which is not there cannot be written to says nothing. */
function reasonOf({ message }: Error): string {
  return /enableOfflineQueue/.test(message) ? '' : `: ${message}`;
}

function innermost(error: Error & { lastNodeError?: Error }): Error {
  return error.lastNodeError ?? error;
}

/** CRC16 (XMODEM) of the hash tag, modulo 16384: the slot of a key in a Redis Cluster. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = key.indexOf('}', open + 1);
  const tag = open >= 0 && close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0x3fff;
}
