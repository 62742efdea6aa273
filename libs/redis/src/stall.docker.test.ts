import { UnavailableError } from '@tollgate/contracts';
import { eventually, useRedis } from '@tollgate/testing';
import { CALL_TIMEOUT_MS, RedisLink } from './redis-link';

const redis = useRedis();

/** Blocks the process like garbage collection or a busy machine. */
function stall(forMs: number): void {
  const until = performance.now() + forMs;
  while (performance.now() < until);
}

describe('a process that stands still longer than its timeout for Redis', () => {
  it('reads the answers that arrived meanwhile, and does not take Redis for dead', async () => {
    const link = new RedisLink({ url: redis.url, name: 'stall-test' });
    try {
      await link.start();
      for (let round = 1; round <= 3; round++) {
        const first = link.call([{ command: 'incr', keys: ['count'], args: [] }]);
        stall(CALL_TIMEOUT_MS + 700);
        expect(await first).toEqual([round * 2 - 1]);
        // The calls after that are not refused either.
        expect(await link.one({ command: 'incr', keys: ['count'], args: [] })).toBe(round * 2);
      }
    } finally {
      link.close();
    }
  });
});

describe('a Redis whose connection was given up after a long silence', () => {
  it('is called at once when a check has found it again', async () => {
    const link = new RedisLink({ url: redis.url, name: 'silent-test', callTimeoutMs: 1_500 });
    try {
      await link.start();
      for (let round = 1; round <= 5; round++) {
        const lost = new Promise((resolve) => link.client.once('close', resolve));
        await redis.pause();
        await expect(link.one({ command: 'incr', keys: ['again'], args: [] })).rejects.toThrow(UnavailableError);
        await lost;
        await redis.unpause();
        await eventually(() => link.check(), { everyMs: 5 });
        expect(await link.one({ command: 'exists', keys: ['none'], args: [] })).toBe(0);
      }
    } finally {
      link.close();
    }
  });
});
