import { slotOf } from './slot';
import { describeTarget, readRedisUrl } from './target';

describe('the address of Redis', () => {
  it('names one server, with the user and password of its ACL, and optional TLS', () => {
    expect(readRedisUrl('redis://127.0.0.1')).toMatchObject({
      kind: 'single',
      nodes: [{ host: '127.0.0.1', port: 6379 }],
      username: undefined,
      password: undefined,
      db: 0,
      tls: undefined,
    });
    expect(readRedisUrl('rediss://tollgate:p%40ss%3Aword@redis.internal:6380/2')).toMatchObject({
      nodes: [{ host: 'redis.internal', port: 6380 }],
      username: 'tollgate',
      password: 'p@ss:word',
      db: 2,
      tls: {},
    });
    expect(readRedisUrl('redis://:secret@[::1]:7000')).toMatchObject({
      nodes: [{ host: '::1', port: 7000 }],
      username: undefined,
      password: 'secret',
    });
  });

  it('names a master behind sentinels', () => {
    expect(readRedisUrl('redis+sentinel://u:p@a,b:1,c/main?sentinelPassword=x')).toMatchObject({
      kind: 'sentinel',
      nodes: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 1 },
        { host: 'c', port: 26379 },
      ],
      master: 'main',
      sentinelPassword: 'x',
    });
  });

  it('names some nodes of a cluster', () => {
    expect(readRedisUrl('rediss+cluster://u:p@a:1,b:2')).toMatchObject({
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
      tls: {},
    });
  });

  it.each([
    ['http://a', /must have one of these forms: redis:/],
    ['redis://a,b', /several hosts/],
    ['redis+sentinel://a', /name of the master/],
    ['redis+cluster://a/3', /only database 0/],
    ['redis://a/x', /must be a number/],
    ['redis://a:b:c', /not host:port/],
    ['redis://a:65536', /not host:port/],
    ['redis://u:100%@a', /user and password/],
    ['redis://%E0%A4%A:p@a', /user and password/],
    ['redis://u:kept/it@a', /\/ is %2F/],
    ['redis://u:p@kept@a', /@ is %40/],
    ['redis://u:1/kept@a', /must be a number/],
    ['redis://a?tls=1', /unknown option "tls"/],
    ['redis://a?ca=/does/not/exist', /"ca" has no effect without TLS: write rediss instead of redis/],
    ['redis+sentinel://a/main?ca=/does/not/exist', /"ca" has no effect without TLS/],
    ['rediss://a?ca=/does/not/exist', /"\/does\/not\/exist" cannot be read \(there is no such file or directory\)/],
    [
      `rediss://a?ca=${__filename}`,
      /the file of "ca" must be a text in PEM with at least one certificate: it has none/,
    ],
  ])('is refused as %s', (url, message) => {
    expect(() => readRedisUrl(url)).toThrow(message);
    expect(() => readRedisUrl(url)).toThrow(/^REDIS_URL: /);
    expect(() => readRedisUrl(url)).not.toThrow(/kept/);
  });

  it('is shown without user and password', () => {
    expect(describeTarget(readRedisUrl('rediss+sentinel://u:secret@a,b/main'))).toBe(
      'rediss+sentinel://a:26379,b:26379/main',
    );
  });
});

describe('the slot of a key', () => {
  it('is that of the Redis Cluster specification', () => {
    // CLUSTER KEYSLOT of each
    expect(slotOf('123456789')).toBe(12_739);
    expect(slotOf('foo')).toBe(12_182);
    expect(slotOf('{user1000}.following')).toBe(slotOf('user1000'));
    expect(slotOf('foo{}{bar}')).toBe(slotOf('foo{}{bar}'));
    expect(slotOf('foo{{bar}}zap')).toBe(slotOf('{bar'));
  });
});
