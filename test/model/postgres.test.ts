import { PostgresAdmissionStore } from '@tollgate/admission';
import { useTestDatabase } from '@tollgate/testing';
import { MODEL_CALL_MS, realStoresSuite } from './real';

const database = useTestDatabase();

describe('on PostgreSQL', () => {
  realStoresSuite(database, async (now) => {
    const admission = new PostgresAdmissionStore({ url: database.url, now, callTimeoutMs: MODEL_CALL_MS });
    await admission.start();
    return { admission };
  });
});
