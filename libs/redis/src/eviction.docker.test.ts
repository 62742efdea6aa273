import { useRedis } from '@tollgate/testing';
import { evictionPolicy } from './eviction';
import { RedisLink } from './redis-link';

describe('a server that deletes keys when its memory is full', () => {
  const redis = useRedis();
  const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);
  const set = async (maxmemory: string, policy: string): Promise<void> => {
    await cli('CONFIG', 'SET', 'maxmemory', maxmemory);
    await cli('CONFIG', 'SET', 'maxmemory-policy', policy);
  };

  const start = async (): Promise<void> => {
    const link = new RedisLink({ url: redis.url, name: 'eviction-test' });
    try {
      await link.start();
    } finally {
      link.close();
    }
  };

  it.each(['allkeys-lru', 'volatile-ttl'])('is refused at the start, with the cure: %s', async (policy) => {
    await set('1gb', policy);
    await expect(start()).rejects.toThrow(
      new RegExp(`^REDIS_URL .*\\(maxmemory-policy ${policy}\\).*: set maxmemory-policy to noeviction\\.$`),
    );
  });

  it.each([
    ['1gb', 'noeviction'],
    ['0', 'allkeys-lru'],
  ])('is another one than a server with maxmemory %s and %s', async (maxmemory, policy) => {
    await set(maxmemory, policy);
    await expect(start()).resolves.toBeUndefined();
  });

  it('is one whose limit a provider hides', () => {
    expect(evictionPolicy('# Memory\r\nmaxmemory_policy:volatile-lru\r\n')).toBe('volatile-lru');
    expect(evictionPolicy('# Memory\r\n')).toBeNull();
  });
});
