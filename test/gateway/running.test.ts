import { bodiesTests } from './bodies.part';
import { lateSettlementsTests } from './late-settlements.part';
import { shortcutTests } from './shortcut.part';
import { streamsTests } from './streams.part';
import { useGateway } from './use-gateway';

// The parts share one start, because it takes more processor time than most of them. Each makes its own tenants.
const gateway = useGateway();
describe('bodies', () => bodiesTests(gateway));
describe('late settlements', () => lateSettlementsTests(gateway));
describe('the shortcut', () => shortcutTests(gateway));
describe('streams', () => streamsTests(gateway));
