import { useTestDatabase, type TestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { openMeteringDatabase } from './database';

export interface MeteringTestDatabase extends TestDatabase {
  /** As the module opens it. */
  readonly dataSource: DataSource;
}

/** A test database and metering's connections to it. They close before it is dropped. */
export function useMeteringDatabase(): MeteringTestDatabase {
  let dataSource: DataSource;
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
