import { useDeployment, useReplicas } from '../services/deployment';
import { writeConfig } from './deployed';
import { poisonSuite } from './poison.suite';
import { poisonedRequestsSuite } from './poisoned-requests.suite';
import { redisSuite } from './redis.suite';
import { GATEWAYS, revocationSuite } from './revocation.suite';

// The suites share one start, because it takes longer than most of their tests. Each makes its own tenants and leaves
// all services as it found them.
const deployment = useDeployment({ TOLLGATE_CONFIG: writeConfig() });
const replicas = useReplicas(deployment, { gateway: GATEWAYS, auth: 1, metering: 1, billing: 1 });
poisonSuite(deployment, replicas);
poisonedRequestsSuite(deployment, replicas);
redisSuite(deployment, replicas);
revocationSuite(deployment, replicas);
