import { badStartsSuite } from './bad-starts.suite';
import { useDeployment } from './deployment';
import { fourServicesSuite } from './four-services.suite';
import { silentKafkaSuite } from './silent-kafka.suite';

// The suites share the servers. Each test starts its own services, and ends them after they have published everything.
const deployment = useDeployment();
describe('four services', () => fourServicesSuite(deployment));
describe('a stop while Kafka is silent', () => silentKafkaSuite(deployment));
describe('a service ends its start with one line about', () => badStartsSuite(deployment));
