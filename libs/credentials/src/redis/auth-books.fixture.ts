import type { CredentialRecord } from '../credential-store';
import type { RedisCredentialStore } from './redis-credential-store';

/** Auth's own database, and auth in `replicas` processes that share it. */
export class AuthBooks {
  readonly records = new Map<string, CredentialRecord>();
  readonly replicas: RedisCredentialStore[] = [];
  /** The number of fillings that have started to write. */
  fills = 0;
  /** While set, a filling stops here, between reading and writing. */
  hold: Promise<void> = Promise.resolve();

  async addReplica(store: RedisCredentialStore): Promise<RedisCredentialStore> {
    await store.start();
    this.replicas.push(store);
    store.refillWith(() => this.refill(store));
    return store;
  }

  /** Commits, then projects, then answers. */
  async commit(record: CredentialRecord, by = this.replicas[0]!): Promise<void> {
    this.records.set(record.hash, record);
    await by.put([record]);
  }

  private async refill(store: RedisCredentialStore): Promise<void> {
    this.fills++;
    const read = [...this.records.values()];
    await this.hold;
    await store.put(read);
  }
}
