import { backendsTests } from './operator/backends.part';
import { docsTests } from './docs/docs.part';
import { keyActivityTests } from './operator/key-activity.part';
import { managementCredentialsTests } from './management/management-credentials.part';
import { managementKeysTests } from './management/management-keys.part';
import { managementRateTests } from './management/management-rate.part';
import { managementReadsTests } from './management/management-reads.part';
import { metricsTests } from './docs/metrics.part';
import { operatorMoneyTests } from './operator/operator-money.part';
import { operatorPortTests } from './operator/operator-port.part';
import { useServices } from './services';
import { unknownFieldsTests } from './hostile/unknown-fields.part';
import { unstorableTextTests } from './hostile/unstorable-text.part';

// The parts share one start, because it takes more processor time than most of them. Each creates its own tenants.
const services = useServices();
describe('the management API, credentials', () => managementCredentialsTests(services));
describe('the management API, keys', () => managementKeysTests(services));
describe('the management API, reads', () => managementReadsTests(services));
describe('the management API, limits', () => managementRateTests(services));
describe('the operator API, backends', () => backendsTests(services));
describe('the operator API, money', () => operatorMoneyTests(services));
describe('the activity of keys', () => keyActivityTests(services));
describe('fields that no endpoint knows', () => unknownFieldsTests(services));
describe('text that no store can hold', () => unstorableTextTests(services));
describe('the documentation', () => docsTests(services));
describe('the operator port', () => operatorPortTests(services));
describe('the metrics', () => metricsTests(services));
