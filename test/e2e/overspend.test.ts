import { overspendSuite } from './overspend.suite';
import { useStandalone } from './standalone';

overspendSuite(useStandalone());
