import { crashSuite } from './crash.suite';
import { useStandalone } from './standalone';

crashSuite(useStandalone());
