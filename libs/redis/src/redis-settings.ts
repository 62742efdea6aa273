import { Secret, Setting, Text, WholeNumber, type ChecksItself } from '@tollgate/runtime';
import { readRedisUrl } from './target';

/** The settings of every process that uses a store on Redis. */
export class RedisSettings implements ChecksItself {
  @Setting('Redis: `redis://…`, `redis+sentinel://…/master`, `redis+cluster://…`; for TLS `rediss…`, `?ca=<file>`.')
  @Secret()
  @Text(/^\S{1,4096}$/, 'a URL such as redis://user:password@host:6379')
  REDIS_URL!: string;

  problems(): string[] {
    try {
      readRedisUrl(this.REDIS_URL);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  }
}

/** The settings of the processes that settle or withdraw. */
export class SettledReplicasSettings {
  @Setting(
    'Replicas of Redis (in a cluster: of the shard) that must have a settlement or a refund before it is durable.',
  )
  @WholeNumber(0, 16)
  REDIS_SETTLED_REPLICAS: number = 0;
}
