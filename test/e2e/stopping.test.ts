import { stoppingSuite } from './stopping.suite';
import { useStandalone } from './standalone';

stoppingSuite(useStandalone({ env: { TOLLGATE_DRAIN_SECONDS: '6', TOLLGATE_DEMO: 'false' } }));
