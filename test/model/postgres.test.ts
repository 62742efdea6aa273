import { PostgresAdmissionStore } from '@tollgate/admission';
import { useTestDatabase } from '@tollgate/testing';
import { realStoresSuite } from './real';

const database = useTestDatabase();

describe('on PostgreSQL', () => {
  realStoresSuite(database, async (now) => {
    const admission = new PostgresAdmissionStore({ url: database.url, now });
    await admission.start();
    return { admission };
  });
});
