import { UnavailableError } from '@tollgate/contracts';
import { eventually, useRedis } from '@tollgate/testing';
import { CALL_TIMEOUT_MS, RedisLink } from './redis-link';

const redis = useRedis();

/** As garbage collection or a machine that is too busy does. */
function stall(forMs: number): void {
  const until = performance.now() + forMs;
  while (performance.now() < until);
}

describe('a process that stands still for longer than it would wait for Redis', () => {
  it('takes the answers that came meanwhile, and does not take Redis for dead', async () => {
    const link = new RedisLink({ url: redis.url, name: 'stall-test' });
    try {
      await link.start();
      for (let round = 1; round <= 3; round++) {
        const first = link.call([{ command: 'incr', keys: ['count'], args: [] }]);
        stall(CALL_TIMEOUT_MS + 700);
        expect(await first).toEqual([round * 2 - 1]);
        // Nor is it refused for some time after that.
        expect(await link.one({ command: 'incr', keys: ['count'], args: [] })).toBe(round * 2);
      }
    } finally {
      link.close();
    }
  });
});

describe('a Redis that was silent for so long that its connection was given up', () => {
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
        await eventually(() => link.check(), { timeoutMs: 10_000, everyMs: 5 });
        expect(await link.one({ command: 'exists', keys: ['none'], args: [] })).toBe(0);
      }
    } finally {
      link.close();
    }
  });
});
