import { comeAndGoSuite } from './come-and-go.suite';
import { useDeployment, useReplicas } from './deployment';
import { moneySuite } from './money.suite';
import { runTimeChangesSuite } from './run-time-changes.suite';

// The suites share one start, because it takes longer than most of their tests. Each makes its own tenants and leaves
// all services ready.
const deployment = useDeployment();
const replicas = useReplicas(deployment, { gateway: 2, auth: 1, metering: 1, billing: 2 });
describe('money', () => moneySuite(deployment, replicas));
describe('a change at run time', () => runTimeChangesSuite(deployment, replicas));
describe('servers that come and go', () => comeAndGoSuite(deployment, replicas));
