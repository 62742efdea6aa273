import { quickstartSuite } from './quickstart.suite';
import { useStandalone } from './standalone';

quickstartSuite(useStandalone({ config: 'shipped' }));
