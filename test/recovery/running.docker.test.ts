import { useDeployment, useReplicas } from '../services/deployment';
import { writeConfig } from './deployed';
import { poisonSuite } from './poison.suite';
import { redisSuite } from './redis.suite';
import { GATEWAYS, revocationSuite } from './revocation.suite';

// One start for all of them, which is dearer than most of their tests: each makes tenants of its own, and leaves all
// services as it found them.
const deployment = useDeployment({ TOLLGATE_CONFIG: writeConfig() });
const replicas = useReplicas(deployment, { gateway: GATEWAYS, auth: 1, metering: 1, billing: 1 });
poisonSuite(deployment, replicas);
redisSuite(deployment, replicas);
revocationSuite(deployment, replicas);
