import { lifeOf, type Lived } from './request-life';

const LIMITS = { requestsPerMinute: 600, tokensPerMinute: 1_000_000, concurrency: 64 };
const plain: Lived = {
  admittedUnder: { keyLimits: LIMITS, tenantLimits: { ...LIMITS, concurrency: 512 } },
  heldNanos: 205_200_000n,
  endNanos: 205_200_000n,
  extensions: 0,
  firstMs: null,
  failed: null,
  asked: null,
};

describe('the life of a request on its usage event', () => {
  it('of a usual request has its limits and its hold, in less than 100 bytes', () => {
    const life = lifeOf(plain);
    expect(life).toEqual({ key: [600, 1_000_000, 64], tenant: [600, 1_000_000, 512], heldNanos: '205200000' });
    expect(JSON.stringify(life).length).toBeLessThan(100);
  });

  it('has extensions, the first output and failed attempts where there were any', () => {
    const failed = [{ backend: 'http://gpu/v1', why: 'busy' as const, status: 503 }];
    expect(lifeOf({ ...plain, endNanos: 400_400_000n, extensions: 1, firstMs: 12, failed })).toMatchObject({
      endNanos: '400400000',
      extensions: 1,
      firstMs: 12,
      failed,
    });
    expect(lifeOf({ ...plain, failed: [] })).not.toHaveProperty('failed');
    expect(lifeOf({ ...plain, asked: 'large' })).toHaveProperty('asked', 'large');
  });
});
