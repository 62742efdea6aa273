import { comeAndGoTests } from './come-and-go.part';
import { consoleTests } from './console.part';
import { useDeployment, useReplicas } from './deployment';
import { explainTests } from './explain.part';
import { moneyTests } from './money.part';
import { CHANGING, secretsTests } from './secrets.part';
import { tracesTests, useTraces } from './traces.part';
import { runTimeChangesTests } from './run-time-changes.part';
import { workersTests } from './workers.part';

// The parts share one start, because it takes longer than most of their tests. Each creates its own tenants and leaves
// all services ready.
const traces = useTraces();
const deployment = useDeployment(Object.assign(traces.env, CHANGING));
const replicas = useReplicas(deployment, { gateway: 2, auth: 1, metering: 1, billing: 2 });
describe('money', () => moneyTests(deployment, replicas));
describe('a complaint', () => explainTests(replicas));
describe('a change at run time', () => runTimeChangesTests(deployment, replicas));
describe('a secret that changes', () => secretsTests(replicas));
describe('a trace', () => tracesTests(traces.receiver, replicas));
describe('a gateway of several workers', () => workersTests(deployment));
describe('the console', () => consoleTests(deployment, replicas));
describe('servers that come and go', () => comeAndGoTests(deployment, replicas));
