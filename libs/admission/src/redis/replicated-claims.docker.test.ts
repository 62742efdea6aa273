import { newId } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, PRIMARY_NAME, redisText, useRedisSentinels } from '@tollgate/testing';
import { admit, recall, settle } from '../suite/claims.fixture';
import { BALANCE, open, refusedWithoutReplica } from './faults.fixture';

// An unavailable replica is the subject here; it would log a warning.
configureLogging({ level: 'silent', pretty: false });

describe('a claim', () => {
  const group = useRedisSentinels();
  const url = () => `redis+sentinel://${group.sentinels.map((port) => `127.0.0.1:${port}`).join(',')}/${PRIMARY_NAME}`;
  const offset = async (index: number) => {
    const info = await redisText(group.network.ports[index]!, 'INFO replication');
    return /(?:slave|master)_repl_offset:(\d+)/.exec(info)?.[1];
  };

  it('repeats a stored answer only when the replica has its settlement, where that is configured', async () => {
    const { f, close } = await open({ url: url(), settledReplicas: 1 });
    await f.setBalance(BALANCE);
    const claimId = newId('key');
    const { id } = await admit(f, claimId);
    const unsettled = await admit(f, newId('key'));
    await eventually(async () => {
      const [written, copied] = [await offset(0), await offset(1)];
      expect(copied).toBe(written);
    });
    const other = await open({ url: url(), settledReplicas: 1 });
    await group.replica.pause();
    await refusedWithoutReplica(() => settle(f, id, claimId));
    // The gateway of the repeat did not make the settlement.
    await refusedWithoutReplica(() => recall(f, claimId, other.f.store));
    // Nothing is settled yet, so nothing can be lost.
    expect(await recall(f, unsettled.request.claim!.id, other.f.store)).toMatchObject({ kind: 'running' });
    await group.replica.unpause();
    await eventually(async () =>
      expect(await recall(f, claimId, other.f.store)).toMatchObject({ kind: 'settled', sealed: 'sealed' }),
    );
    await Promise.all([close(), other.close()]);
  });
});
