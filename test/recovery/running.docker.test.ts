import { useDeployment, useReplicas } from '../services/deployment';
import { writeConfig } from './deployed';
import { poisonTests } from './poison.part';
import { poisonedRequestsTests } from './poisoned-requests.part';
import { emptiedRedisTests } from './emptied-redis.part';
import { GATEWAYS, revocationTests } from './revocation.part';
import { unavailableRedisTests } from './unavailable-redis.part';

// The parts share one start, because it takes longer than most of their tests. Each creates its own tenants and leaves
// all services as it found them.
const deployment = useDeployment({ TOLLGATE_CONFIG: writeConfig() });
const replicas = useReplicas(deployment, { gateway: GATEWAYS, auth: 1, metering: 1, billing: 1 });
poisonTests(deployment, replicas);
poisonedRequestsTests(deployment, replicas);
emptiedRedisTests(deployment, replicas);
unavailableRedisTests(deployment, replicas);
revocationTests(deployment, replicas);
