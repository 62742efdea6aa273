import { Cluster, type Redis } from 'ioredis';
import { slotOf } from './slot';
import type { RedisClient } from './target';

/** The name of the only shard of a single server, and of a shard whose master is unknown. */
export const SINGLE = 'single';

/** The masters behind a client. Each is a shard; a single server is one shard. */
export class Shards {
  constructor(private readonly client: RedisClient) {}

  nodes(): Redis[] {
    return this.client instanceof Cluster ? this.client.nodes('master') : [this.client];
  }

  masters(): ReadonlyMap<string, Redis> {
    return new Map(this.nodes().map((node) => [this.nameOf(node), node]));
  }

  node(shard: string): Redis | undefined {
    return this.nodes().find((node) => shard === SINGLE || this.nameOf(node) === shard);
  }

  nameOf({ options: { host, port } }: Redis): string {
    return this.client instanceof Cluster ? `${host}:${port}` : SINGLE;
  }

  /** In a cluster: the master of the key, as far as the client knows. */
  shardOf(key: string): string {
    if (!(this.client instanceof Cluster)) return SINGLE;
    return this.client.slots[slotOf(key)]?.[0] ?? SINGLE;
  }
}
