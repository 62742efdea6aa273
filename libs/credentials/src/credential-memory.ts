import { UnavailableError } from '@tollgate/contracts';
import { LRUCache } from 'lru-cache';
import type { CredentialRecord } from './credential-store';

/** About 35 MB of records. The one used longest ago is dropped first. */
export const MAX_RECORDS_IN_MEMORY = 100_000;
/** The maximum number of hashes in one query. */
export const MAX_HASHES_PER_READ = 1_000;
/**
 * The maximum number of look-ups that wait for the store. More are refused, so that unknown values cannot fill memory.
 */
export const MAX_WAITING_LOOKUPS = 10_000;

/**
 * Memory that has not been checked against the store for this time may lack a revocation. Less than the promised
 * second, and far more than a store's check interval.
 */
export const MAX_AGE_MS = 900;

/**
 * Reads records from the store. Missing records are absent from the result. Rejects when the store does not answer in
 * time.
 */
export type ReadRecords = (hashes: string[]) => Promise<CredentialRecord[]>;

/** A look-up that waits for the store. All callers with the same hash share it. */
interface Miss {
  hash: string;
  answer: Promise<CredentialRecord | null>;
  resolve(record: CredentialRecord | null): void;
  reject(error: Error): void;
  /** A change that arrived during the read. The store's answer may be older. */
  newest: CredentialRecord | null;
}

/**
 * The cache of one process in front of a store: records by the hash of their credential.
 * A hit is answered synchronously while memory is fresh: all changes were applied, or it was known that there were
 * none, at most MAX_AGE_MS ago (`upTo`). Otherwise the store is asked, as for a miss, because an unreachable store may
 * have a revocation that is not known here. Misses gather while a read is in progress (or until the end of the event
 * loop's turn) and go out as the next one. There is one read at a time, however many values are tried. Only records of
 * the store are remembered, so unknown values leave nothing behind.
 * The owner must apply (`apply`) every change that became visible after the first look-up. Then a record here is never
 * older than the last applied change, even if a read was in progress at that moment.
 */
export class CredentialMemory {
  private readonly records = new LRUCache<string, CredentialRecord>({ max: MAX_RECORDS_IN_MEMORY });
  private readonly misses = new Map<string, Miss>();
  private waiting: Miss[] = [];
  private reading = false;
  private closed = false;
  /** Counts how often everything was forgotten. A read from before is not remembered. */
  private epoch = 0;
  private upToMs = -Infinity;

  constructor(private readonly read: ReadRecords) {}

  get size(): number {
    return this.records.size;
  }

  lookup(hash: string): CredentialRecord | Promise<CredentialRecord | null> {
    const known = this.records.get(hash);
    if (known && performance.now() - this.upToMs <= MAX_AGE_MS) return known;
    const miss = this.misses.get(hash);
    if (miss) return miss.answer;
    if (this.closed) return Promise.reject(new UnavailableError('the credential store is closed'));
    if (this.misses.size >= MAX_WAITING_LOOKUPS)
      return Promise.reject(new UnavailableError('too many look-ups wait for the credential store'));
    return this.ask(hash);
  }

  /** All changes before this moment (of `performance.now()`) have been applied. */
  upTo(ms: number): void {
    this.upToMs = ms;
  }

  /** Applies changed records. Each replaces the record in memory, or the one being read, if it is newer. */
  apply(changed: readonly CredentialRecord[]): void {
    for (const record of changed) {
      const known = this.records.peek(record.hash);
      if (known && known.version < record.version) this.records.set(record.hash, record);
      const miss = this.misses.get(record.hash);
      if (miss) miss.newest = newer(miss.newest, record);
    }
  }

  /** The store was emptied or restored: nothing that was read from it counts any more. */
  forgetAll(): void {
    this.epoch++;
    this.records.clear();
    for (const miss of this.misses.values()) miss.newest = null;
  }

  /** Refuses waiting and later look-ups that need the store. Records in memory are still returned. */
  close(): void {
    this.closed = true;
    this.refuse([...this.misses.values()], 'the credential store is closed');
    this.waiting = [];
  }

  private ask(hash: string): Promise<CredentialRecord | null> {
    const miss = newMiss(hash);
    this.misses.set(hash, miss);
    this.waiting.push(miss);
    if (!this.reading) {
      this.reading = true;
      setImmediate(() => void this.readAll());
    }
    return miss.answer;
  }

  private async readAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MAX_HASHES_PER_READ);
      const { epoch } = this;
      try {
        const found = new Map((await this.read(batch.map((miss) => miss.hash))).map((record) => [record.hash, record]));
        for (const miss of batch)
          this.settle(miss, newer(found.get(miss.hash) ?? null, miss.newest), epoch === this.epoch);
      } catch (error) {
        // Look-ups behind it would wait as long again for the same result.
        const failed = [...batch, ...this.waiting];
        this.waiting = [];
        this.refuse(failed, `the credential store does not answer: ${(error as Error).message}`);
      }
    }
    this.reading = false;
  }

  private settle(miss: Miss, found: CredentialRecord | null, remember: boolean): void {
    if (this.misses.get(miss.hash) === miss) this.misses.delete(miss.hash);
    // A store that lost its last writes has an older record than this process.
    const record = found && remember ? newer(found, this.records.peek(miss.hash) ?? null) : found;
    if (record && remember) this.records.set(miss.hash, record);
    miss.resolve(record);
  }

  private refuse(misses: readonly Miss[], message: string): void {
    for (const miss of misses) {
      this.misses.delete(miss.hash);
      miss.reject(new UnavailableError(message));
    }
  }
}

function newMiss(hash: string): Miss {
  const miss = { hash, newest: null } as Partial<Miss>;
  miss.answer = new Promise((resolve, reject) => Object.assign(miss, { resolve, reject }));
  return miss as Miss;
}

function newer(a: CredentialRecord | null, b: CredentialRecord | null): CredentialRecord | null {
  if (!a || !b) return a ?? b;
  return a.version >= b.version ? a : b;
}
