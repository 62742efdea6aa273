import { secretsSuite } from './secrets.suite';
import { useStandalone } from './standalone';

secretsSuite(useStandalone({ env: { TOLLGATE_LOG_LEVEL: 'trace' } }));
