import { useComposed } from '../e2e/composed';
import { faultSuite } from './faults.suite';
import { Clocks } from './nemesis/clocks';
import { Control } from './nemesis/control';
import { nemesisEnvironment } from './nemesis/environment';
import { nemesisSuite } from './nemesis.suite';

// Both suites share one start.
const clocks = new Clocks();
const tollgate = useComposed(nemesisEnvironment(clocks));
afterAll(() => clocks.remove());
let control: Control;
beforeAll(async () => void (control = await Control.start(tollgate)));
afterAll(() => control?.stop());
faultSuite(tollgate, () => control);
nemesisSuite(tollgate, clocks, () => control);
