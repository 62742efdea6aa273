import { badStartsTests } from './bad-starts.part';
import { useDeployment } from './deployment';
import { fourServicesTests } from './four-services.part';
import { silentKafkaTests } from './silent-kafka.part';

// The parts share the servers. Each test starts its own services, and ends them after they have published everything.
const deployment = useDeployment();
describe('four services', () => fourServicesTests(deployment));
describe('a stop while Kafka is silent', () => silentKafkaTests(deployment));
describe('a service does not start, and names the cause in one line,', () => badStartsTests(deployment));
