import { UnavailableError } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/store.fixture';
import { BALANCE, open } from './faults.fixture';

// An unavailable Redis is the subject here; it would log a warning.
configureLogging({ level: 'silent', pretty: false });

describe('a Redis that stalls', () => {
  const redis = useRedis();
  const cli = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);

  it('does no repair that billing has given up: the books may have a newer version by then', async () => {
    const { f, close } = await open({ url: redis.url });
    const { tenantId } = f;
    await f.setBalance(BALANCE);
    const books = { tenantId, version: 5n, balanceNanos: BALANCE, suspended: false, releases: [] };
    // It accepts reads, and keeps writes until it goes on.
    await cli('CLIENT', 'PAUSE', '600000', 'WRITE');
    await expect(f.store.repair({ ...books, budgets: [], spent: [] })).rejects.toThrow(UnavailableError);
    await cli('CLIENT', 'UNPAUSE');
    // The same connection, so the repair has been done or refused before.
    const newer = { ...books, version: 2n, balanceNanos: TOKEN_NANOS };
    await eventually(() => f.store.applyBalanceUpdates([newer]));
    expect(await f.sums()).toMatchObject({ version: 2n, balanceNanos: TOKEN_NANOS });
    await close();
  });
});
