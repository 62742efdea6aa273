import { useComposed } from './composed';
import { crashSuite } from './crash.suite';
import { kafkaUsersTests } from './kafka-users.part';
import { overspendSuite, sharedOverspendSuite } from './overspend.suite';
import { quickstartSuite } from './quickstart.suite';
import { replicasSuite } from './replicas.suite';
import { secretsSuite } from './secrets.suite';
import { DRAIN_SECONDS, stoppingSuite } from './stopping.suite';

// The suites share one start: two gateways, two replicas of metering, two of billing, and the load balancer. The stores
// accept only TLS. They start and end it several times, and each start waits for a health check of every container.
const tollgate = useComposed({
  TOLLGATE_TEST_CHECK_SECONDS: '3',
  TOLLGATE_LOG_LEVEL: 'trace',
  TOLLGATE_DRAIN_SECONDS: DRAIN_SECONDS,
  TOLLGATE_LAME_DUCK_SECONDS: '1',
  TOLLGATE_STACK_TLS: 'true',
});
quickstartSuite(tollgate);
kafkaUsersTests(tollgate);
replicasSuite(tollgate);
overspendSuite(tollgate);
sharedOverspendSuite(tollgate);
secretsSuite(tollgate);
stoppingSuite(tollgate);
crashSuite(tollgate);
