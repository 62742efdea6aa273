import { PostgresAdmissionStore } from '@tollgate/admission';
import { moneyOutSuite } from './money-out.suite';

describe('beside the admission store on Postgres', () => moneyOutSuite((url) => new PostgresAdmissionStore({ url })));
