import { useTestDatabase, type TestDatabase } from '@tollgate/testing';
import { openMeteringDatabase, type MeteringDataSource } from './database';

export interface MeteringTestDatabase extends TestDatabase {
  /** As the module opens it. */
  readonly dataSource: MeteringDataSource;
}

/** A test database and metering's connections to it. They close before it is dropped. */
export function useMeteringDatabase(): MeteringTestDatabase {
  let dataSource: MeteringDataSource;
  afterAll(() => dataSource.destroy());
  const database = useTestDatabase();
  beforeAll(async () => {
    dataSource = await openMeteringDatabase(database.url);
  });
  return {
    ...database,
    get dataSource() {
      return dataSource;
    },
  };
}

/** From now on months are closed as of this time, so that none ends while a test runs. */
export async function closeMonthsAsOf(database: TestDatabase, now: Date): Promise<void> {
  const [row] = await database.query<{ sql: string }>(
    `SELECT pg_get_functiondef('metering.close_month'::regproc) AS sql`,
  );
  await database.query(row!.sql.replaceAll('now()', `timestamptz '${now.toISOString()}'`));
}
