import { PostgresAdmissionStore } from '@tollgate/admission';
import { useTestDatabase } from '@tollgate/testing';
import { crowdSuite } from './crowd.suite';

const database = useTestDatabase();

describe('a crowd, on PostgreSQL alone', () => {
  crowdSuite(database, async () => {
    const admission = new PostgresAdmissionStore({ url: database.url });
    await admission.start();
    return { admission };
  });
});
