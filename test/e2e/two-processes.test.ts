import { replicasSuite } from './replicas.suite';
import { useStandalone } from './standalone';

// On one DATABASE_URL, started at the same moment on an empty database: migrations and the demo happen once.
replicasSuite(useStandalone({ processes: 2 }));
