import { useComposed } from '../e2e/composed';
import { faultSuite } from './faults.suite';

faultSuite(useComposed({ TOLLGATE_DRAIN_SECONDS: '10', TOLLGATE_LAME_DUCK_SECONDS: '5' }));
