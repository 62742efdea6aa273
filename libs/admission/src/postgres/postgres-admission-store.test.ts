import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { admissionSuite } from '../admission.suite';
import { PostgresAdmissionStore } from './postgres-admission-store';

const database = useTestDatabase();

admissionSuite('postgres', async (options) => {
  const store = new PostgresAdmissionStore({
    url: database.url,
    callTimeoutMs: PATIENT_CALL_MS,
    ...options,
  });
  await store.start();
  return store;
});
