import { bodiesTests } from './requests/bodies.part';
import { shortcutTests } from './requests/shortcut.part';
import { streamsTests } from './streams/streams.part';
import { useGateway } from './use-gateway';

// The parts share one start, because it takes more processor time than most of them. Each creates its own tenants.
const gateway = useGateway();
describe('bodies', () => bodiesTests(gateway));
describe('the shortcut', () => shortcutTests(gateway));
describe('streams', () => streamsTests(gateway));
