import { PostgresAdmissionStore } from '@tollgate/admission';
import { useTestDatabase } from '@tollgate/testing';
import { CALL_TIMEOUT_MS, realStoresSuite } from './real';

const database = useTestDatabase();

describe('on PostgreSQL', () => {
  realStoresSuite(database, async (now) => {
    const admission = new PostgresAdmissionStore({ url: database.url, now, callTimeoutMs: CALL_TIMEOUT_MS });
    await admission.start();
    return { admission };
  });
});
