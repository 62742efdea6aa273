import { sharedOverspendSuite } from './overspend.suite';
import { replicasSuite } from './replicas.suite';
import { useStandalone } from './standalone';

// Two processes on one DATABASE_URL, started at once on an empty database. Migrations and the demo happen only once.
const tollgate = useStandalone({ processes: 2 });
replicasSuite(tollgate);
sharedOverspendSuite(tollgate);
