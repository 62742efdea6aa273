import { Secret, Text, WholeNumber, type ChecksItself } from '@tollgate/runtime';
import { readRedisUrl } from './target';

/** Of every process that uses a store on Redis. */
export class RedisSettings implements ChecksItself {
  @Secret() @Text(/^\S{1,4096}$/, 'a URL such as redis://user:password@host:6379') REDIS_URL!: string;

  problems(): string[] {
    try {
      readRedisUrl(this.REDIS_URL);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  }
}

/** Of the processes that settle or withdraw. */
export class SettledReplicasSettings {
  /** A settlement, or what a refund takes, counts as durable only when so many replicas of Redis have it. */
  @WholeNumber(0, 16) REDIS_SETTLED_REPLICAS: number = 0;
}
