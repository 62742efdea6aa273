import { PostgresAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { contentionSuite } from './contention.suite';

const database = useTestDatabase();

describe('contention on PostgreSQL alone', () => {
  contentionSuite(database, async () => {
    const admission = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await admission.start();
    return { admission };
  });
});
