import { budgetsSuite } from './suite/budgets.suite';
import { booksSuite } from './suite/books.suite';
import { callsSuite } from './suite/calls.suite';
import { claimsSuite } from './suite/claims.suite';
import { creditSuite } from './suite/credit.suite';
import { clockSuite } from './suite/clock.suite';
import { expectedEndsSuite } from './suite/expected-ends.suite';
import { forgottenClaimsSuite } from './suite/forgotten-claims.suite';
import type { OpenStore } from './suite/store.fixture';
import { holdsSuite } from './suite/holds.suite';
import { limitsSuite } from './suite/limits.suite';
import { lookSuite } from './suite/look.suite';
import { propertySuite } from './suite/property.suite';
import { repairSuite } from './suite/repair.suite';
import { sharingSuite } from './suite/sharing.suite';
import { withdrawSuite } from './suite/withdraw.suite';
import { statesSuite } from './suite/states.suite';

/** The guarantees of the admission store, as tests. */
export function admissionSuite(name: string, open: OpenStore): void {
  describe(`${name}: limits`, () => limitsSuite(open));
  describe(`${name}: credit`, () => creditSuite(open));
  describe(`${name}: budgets`, () => budgetsSuite(open));
  describe(`${name}: looks`, () => lookSuite(open));
  describe(`${name}: expected ends`, () => expectedEndsSuite(open));
  describe(`${name}: states of a hold`, () => statesSuite(open));
  describe(`${name}: holds`, () => holdsSuite(open));
  describe(`${name}: claims`, () => claimsSuite(open));
  describe(`${name}: forgotten claims`, () => forgottenClaimsSuite(open));
  describe(`${name}: calls of the management API`, () => callsSuite(open));
  describe(`${name}: books`, () => booksSuite(open));
  describe(`${name}: clock`, () => clockSuite(open));
  describe(`${name}: withdrawals`, () => withdrawSuite(open));
  describe(`${name}: repairs`, () => repairSuite(open));
  describe(`${name}: any order`, () => propertySuite(open));
  describe(`${name}: several processes`, () => sharingSuite(open));
}
