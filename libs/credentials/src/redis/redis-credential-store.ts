import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { UnavailableError } from '@tollgate/contracts';
import { readFunctionLibrary, RedisLink, type NatMap } from '@tollgate/redis';
import { CredentialMemory } from '../credential-memory';
import { CredentialStore, type CredentialRecord } from '../credential-store';
import { ChangeFeed } from './change-feed';
import { Filler, FILLER_LEASE_MS, type Refill } from './filler';
import { KEYS } from './keys';
import { Notifications } from './notifications';

const MAX_RECORDS_PER_WRITE = 500;
const CHANNEL = 'tgc:changed';
/**
 * How long a server counts as a primary after it has answered the feed, which asks every 300 ms. Well below the second
 * in which a revocation is in force: after a failover, a former primary is read this much longer at most.
 */
const MAX_PRIMARY_AGE_MS = 500;
/** Seam and version of the data in Redis. */
const FAMILY = 'tollgate_credentials_v1';
/** What the store calls in Redis. */
export const credentialsLibrary = () => readFunctionLibrary(FAMILY, join(__dirname, 'lua'));

export interface RedisCredentialStoreOptions {
  /** One server, Sentinel or Cluster: see `readRedisUrl`. */
  url: string;
  /** In a cluster behind address translation. */
  natMap?: NatMap;
}

/**
 * The credential store of the distributed form: a hash in Redis, records in memory in front of it, pub/sub and a feed
 * of changes that keep them young. Two connections: one for commands, one that listens.
 */
export class RedisCredentialStore extends CredentialStore {
  private readonly link: RedisLink;
  private readonly memory: CredentialMemory;
  private readonly feed: ChangeFeed;
  private readonly filler: Filler;
  private readonly notifications: Notifications;
  private started = false;
  /** When the feed last found a primary, by `performance.now()`. */
  private primaryAtMs = -Infinity;

  constructor(options: RedisCredentialStoreOptions) {
    super();
    const { url, natMap } = options;
    const library = credentialsLibrary();
    const common = { url, ...(natMap ? { natMap } : {}) };
    const probe = { function: 'changes', keys: KEYS, args: [Number.MAX_SAFE_INTEGER, 1] };
    this.link = new RedisLink({ ...common, name: 'tollgate-credentials', library, probe });
    this.memory = new CredentialMemory((hashes) => this.read(hashes));
    this.feed = new ChangeFeed(this.link, {
      changed: (records) => this.memory.apply(records),
      missed: () => this.memory.forgetAll(),
      upTo: (ms) => {
        this.primaryAtMs = ms;
        this.memory.upTo(ms);
      },
      notComplete: () => this.filler.notComplete(),
    });
    this.filler = new Filler(this.link, () => this.feed.wake());
    this.notifications = new Notifications(common, CHANNEL, () => this.feed.wake());
  }

  /** Records in memory. */
  get size(): number {
    return this.memory.size;
  }

  override refillWith(refill: Refill): void {
    this.filler.fillWith(refill);
    this.feed.wake();
  }

  async put(records: readonly CredentialRecord[], readAtMs?: number): Promise<void> {
    for (let from = 0; from < records.length; from += MAX_RECORDS_PER_WRITE) {
      const batch = records.slice(from, from + MAX_RECORDS_PER_WRITE);
      const args = batch.flatMap((record) => [record.hash, record.version, JSON.stringify(record)]);
      await this.link.one({
        function: 'put',
        keys: KEYS,
        args: [CHANNEL, randomUUID(), this.filler.id, FILLER_LEASE_MS, readAtMs ?? '', ...args],
      });
      // In force here at once. The other processes are notified.
      this.memory.apply(batch);
    }
  }

  override async forget(): Promise<boolean> {
    return (await this.link.one({ function: 'forget', keys: KEYS, args: [] })) === 1;
  }

  lookup(hash: string): CredentialRecord | null | Promise<CredentialRecord | null> {
    // Without the feed a record in memory would never learn of its revocation.
    if (!this.started) return Promise.reject(new UnavailableError('the credential store is not started'));
    return this.memory.lookup(hash);
  }

  async start(): Promise<void> {
    await this.link.start();
    await this.feed.start();
    this.notifications.start();
    this.started = true;
  }

  /** Rejects when Redis does not answer now. */
  check(): Promise<void> {
    return this.link.check();
  }

  async close(): Promise<void> {
    this.started = false;
    this.memory.close();
    this.notifications.close();
    this.link.close();
    await this.feed.stop();
  }

  private async read(hashes: string[]): Promise<CredentialRecord[]> {
    // Asked of the server only if the feed has not asked just now: it takes a third of the server's time of a look-up.
    const mustBePrimary = performance.now() - this.primaryAtMs > MAX_PRIMARY_AGE_MS;
    const reply = await this.link.one({ function: 'read', keys: KEYS, args: [mustBePrimary ? '1' : '', ...hashes] });
    const [complete, records] = reply as [number, (string | null)[]];
    // A missing value may still be valid, and an existing one may be older than the one that was lost.
    if (complete === 0) throw new UnavailableError('the credential store is not complete yet');
    return records.flatMap((record) => (record === null ? [] : (JSON.parse(record) as CredentialRecord)));
  }
}
