import { DRAIN_SECONDS, stoppingSuite } from './stopping.suite';
import { useStandalone } from './standalone';

stoppingSuite(useStandalone({ env: { TOLLGATE_DRAIN_SECONDS: DRAIN_SECONDS, TOLLGATE_DEMO: 'false' } }));
