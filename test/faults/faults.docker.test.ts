import { useComposed } from '../e2e/composed';
import { faultSuite } from './faults.suite';
import { Clocks } from './nemesis/clocks';
import { nemesisEnvironment } from './nemesis/environment';
import { nemesisSuite } from './nemesis.suite';

// One start for both.
const clocks = new Clocks();
const tollgate = useComposed(nemesisEnvironment(clocks));
afterAll(() => clocks.remove());
faultSuite(tollgate);
nemesisSuite(tollgate, clocks);
