import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/store.fixture';
import { claimKeys } from './by-tenant';
import { BALANCE, open } from './faults.fixture';

// Unavailable servers are the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

describe('a server that was promoted without the last writes of its primary', () => {
  const redis = useRedis();
  const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);

  /** Keeps what the tenant's keys are now. The answer promotes a server that has no later write of them. */
  async function replicated(tenantId: string): Promise<() => Promise<void>> {
    const keys = claimKeys(tenantId);
    for (const key of keys) await cli('COPY', key, `${key}:copy`);
    return async () => {
      await cli('DEL', ...keys);
      for (const key of keys)
        if ((await cli('EXISTS', `${key}:copy`)).trim() === '1') await cli('RENAME', `${key}:copy`, key);
      // A promotion begins another replication history.
      await cli('REPLICAOF', '127.0.0.1', '1');
      await cli('REPLICAOF', 'NO', 'ONE');
    };
  }

  it('has lost holds, whose requests go on and report to metering, and none that ended', async () => {
    const { f, client, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    const { tenantId } = f;
    const hold = async (claim?: { id: string; fingerprint: string }) => {
      const request = { ...f.request(), ...(claim ? { claim } : {}) };
      const result = await eventually(() => client.admit(request));
      if (result.kind !== 'held') throw new Error(result.reason);
      return { id: request.draft.id, tenantId, storeEpoch: result.storeEpoch };
    };
    const settle = async ({ id, storeEpoch }: { id: string; storeEpoch?: string | undefined }) =>
      (await eventually(() => f.store.settle([{ event: f.event(id, TOKEN_NANOS), storeEpoch }])))[0];
    const [kept, ended] = [await hold(), await hold()];
    await f.store.void([ended]);
    const promote = await replicated(tenantId);
    const lost = await hold();
    const claim = { id: 'c'.repeat(43), fingerprint: 'f'.repeat(43) };
    const claimed = await hold(claim);
    await promote();
    // Before and after other requests were admitted.
    for (let n = 0; n < 2; n++) {
      expect(await settle(lost)).toEqual({ kind: 'lost' });
      expect(await f.store.progress([{ ...lost, delivered: null }])).toEqual([true]);
      expect(await f.store.extend([{ ...lost, wantNanos: 1n, minNanos: 1n }])).toEqual([{ kind: 'refused' }]);
      expect(await settle(ended)).toEqual({ kind: 'forbidden' });
      await hold();
    }
    // Its Idempotency-Key is lost with it. A repeat runs, and is charged, so this run is not.
    expect(await settle(claimed)).toEqual({ kind: 'forbidden' });
    expect(await f.store.progress([{ ...claimed, delivered: null }])).toEqual([false]);
    await hold(claim);
    expect(await settle(kept)).toMatchObject({ kind: 'settled', repeated: false });
    await close();
  });
});
