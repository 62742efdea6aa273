import { StartError, type ConfigCheck, type ConfigSource, type TollgateConfig } from '@tollgate/runtime';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { useBilling } from '../testing/billing.fixture';
import { BooksCurrency } from './books-currency';

const database = useTestDatabase();

describe('the currency of the books', () => {
  const billing = useBilling(database);
  const config = (currency: string) => ({ currency }) as TollgateConfig;
  const kept = async () =>
    (await database.query<{ currency: string }>('SELECT currency FROM billing.books_currency')).map(
      (row) => row.currency,
    );

  it('may change while the books are empty, but not after the first entry', async () => {
    const checks: ConfigCheck[] = [];
    const listeners: ((config: TollgateConfig) => void)[] = [];
    const source: Pick<ConfigSource, 'addCheck' | 'onChange'> = {
      addCheck: (check) => void checks.push(check),
      onChange: (listener) => void listeners.push(listener),
    };
    const start = (currency: string) =>
      new BooksCurrency(billing.dataSource, { currency: () => currency, config: source }).onModuleInit();
    await start('USD');
    await start('EUR');
    expect(await kept()).toEqual(['EUR']);
    // A changed file is accepted, and its currency is that of the books from then on.
    expect(await checks[1]!(config('USD'))).toEqual([]);
    listeners[1]!(config('USD'));
    await eventually(async () => expect(await kept()).toEqual(['USD']));

    await billing.tenant(10);
    const starting = start('USD');
    // A change while the process starts is checked, too.
    expect([checks.length, listeners.length]).toEqual([3, 3]);
    await starting;
    expect(await checks[1]!(config('USD'))).toEqual([]);
    const line =
      'currency: the books are in USD, but the configuration says EUR. Amounts are not converted. Restore USD, ' +
      'or start books in EUR in another database.';
    expect(await checks[1]!(config('EUR'))).toEqual([line]);
    const refused = await start('EUR').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StartError);
    expect((refused as Error).message).toBe(line);
    expect(await kept()).toEqual(['USD']);
  });
});
