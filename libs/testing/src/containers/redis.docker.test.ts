import { eventually } from '../eventually';
import { ask as dial } from './ask';
import { useRedis } from './redis';

describe('a Redis in a container', () => {
  const redis = useRedis();
  const ask = (...command: string[]): Promise<string> =>
    redis.exec(['redis-cli', '-p', String(redis.port), ...command]);

  it('keeps its data and its port through stop, kill and start', async () => {
    const { port } = redis;
    await ask('SET', 'a', '1');
    await redis.stop();
    await redis.start();
    await ask('INCR', 'a');
    await redis.kill();
    await redis.start();
    expect((await ask('GET', 'a')).trim()).toBe('2');
    expect(redis.port).toBe(port);
  });

  it('answers the host, is silent while paused, and refuses connections while disconnected', async () => {
    const ping = (): Promise<string> => dial(redis.port, 'PING\r\n', (bytes) => bytes.includes('\r\n')).then(String);
    expect(await ping()).toBe('+PONG\r\n');
    await redis.pause();
    await expect(ping()).rejects.toThrow('no answer');
    await redis.unpause();
    expect(await eventually(ping)).toBe('+PONG\r\n');
    await redis.disconnect();
    await expect(ping()).rejects.toThrow(/ECONNREFUSED|ECONNRESET|closed/);
    await redis.connect();
    expect(await eventually(ping)).toBe('+PONG\r\n');
  });
});
