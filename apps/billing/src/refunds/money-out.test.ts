import { PostgresAdmissionStore } from '@tollgate/admission';
import { PATIENT_CALL_MS } from '@tollgate/testing';
import { moneyOutSuite } from './money-out.suite';

describe('beside the admission store on Postgres', () =>
  moneyOutSuite((url) => new PostgresAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS })));
