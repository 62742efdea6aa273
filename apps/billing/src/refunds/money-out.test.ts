import { PostgresAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS } from '@tollgate/testing';
import { lastCentSuite } from './last-cent.suite';
import { moneyOutSuite } from './money-out.suite';

describe('beside the admission store on Postgres', () => {
  const open = (url: string) => new PostgresAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS });
  moneyOutSuite(open);
  lastCentSuite(open);
});
