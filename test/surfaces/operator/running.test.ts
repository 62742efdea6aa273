import { useServices } from '../services';
import { operatorApiTests } from './operator-api.part';
import { operatorBudgetsTests } from './operator-budgets.part';
import { operatorKeysTests } from './operator-keys.part';
import { operatorTenantsTests } from './operator-tenants.part';
import { operatorTokensTests } from './operator-tokens.part';

// The parts share one start, and damage no books, because some of them run reconcile.
const services = useServices();
describe('the operator API, answers', () => operatorApiTests(services));
describe('the operator API, tenants', () => operatorTenantsTests(services));
describe('the operator API, keys', () => operatorKeysTests(services));
describe('the operator API, budgets', () => operatorBudgetsTests(services));
describe('the operator API, tokens', () => operatorTokensTests(services));
