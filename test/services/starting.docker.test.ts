import { badStartsSuite } from './bad-starts.suite';
import { useDeployment } from './deployment';
import { fourServicesSuite } from './four-services.suite';
import { silentKafkaSuite } from './silent-kafka.suite';

// The same servers for all of them. Services are started by each test and end with it, with all that they had to tell.
const deployment = useDeployment();
describe('four services', () => fourServicesSuite(deployment));
describe('an end while Kafka is silent', () => silentKafkaSuite(deployment));
describe('a start that is refused', () => badStartsSuite(deployment));
