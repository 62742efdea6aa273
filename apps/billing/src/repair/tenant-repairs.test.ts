import { PostgresAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import type { OpenStore } from './repairs.fixture';
import { repairsInMotionSuite } from './repairs-in-motion.suite';
import { tenantRepairsSuite } from './tenant-repairs.suite';

const COLUMNS = {
  version: 'version',
  balance: 'balance_nanos',
  settled: 'settled_nanos',
  suspended: 'suspended',
  in_flight: 'in_flight',
};

describe('in the admission store on Postgres', () => {
  const database = useTestDatabase();
  const openStore: OpenStore = () => ({
    store: new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS }),
    spoil: {
      set: (tenantId, field, value) =>
        database.query(`UPDATE admission.tenant SET ${COLUMNS[field]} = $2 WHERE tenant_id = $1`, [tenantId, value]),
    },
  });
  tenantRepairsSuite(database, openStore);
  repairsInMotionSuite(database, openStore);
});
