import { useComposed } from '../e2e/composed';
import { faultTests } from './faults.part';
import { Clocks } from './nemesis/clocks';
import { Control } from './nemesis/control';
import { nemesisEnvironment } from './nemesis/environment';
import { nemesisTests } from './nemesis.part';

// Both parts share one start.
const clocks = new Clocks();
const tollgate = useComposed(nemesisEnvironment(clocks));
afterAll(() => clocks.remove());
let control: Control;
beforeAll(async () => void (control = await Control.start(tollgate)));
afterAll(() => control?.stop());
faultTests(tollgate, () => control);
nemesisTests(tollgate, clocks, () => control);
