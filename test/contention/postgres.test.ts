import { PostgresAdmissionStore } from '@tollgate/admission';
import { useTestDatabase } from '@tollgate/testing';
import { contentionSuite } from './contention.suite';

const database = useTestDatabase();

describe('contention on PostgreSQL alone', () => {
  contentionSuite(database, async () => {
    const admission = new PostgresAdmissionStore({ url: database.url });
    await admission.start();
    return { admission };
  });
});
