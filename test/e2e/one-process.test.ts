import { crashSuite } from './crash.suite';
import { overspendSuite } from './overspend.suite';
import { secretsSuite } from './secrets.suite';
import { useStandalone } from './standalone';
import { DRAIN_SECONDS, stoppingSuite } from './stopping.suite';

// The suites share one start, because the first start takes more processor time than most of them.
const tollgate = useStandalone({ env: { TOLLGATE_LOG_LEVEL: 'trace', TOLLGATE_DRAIN_SECONDS: DRAIN_SECONDS } });
overspendSuite(tollgate);
secretsSuite(tollgate);
stoppingSuite(tollgate);
crashSuite(tollgate);
