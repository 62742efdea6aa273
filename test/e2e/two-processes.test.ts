import { sharedOverspendSuite } from './overspend.suite';
import { replicasSuite } from './replicas.suite';
import { useStandalone } from './standalone';

// On one DATABASE_URL, started at the same moment on an empty database: migrations and the demo happen once.
const tollgate = useStandalone({ processes: 2 });
replicasSuite(tollgate);
sharedOverspendSuite(tollgate);
