import { createDemo, OperatorClient, type Demo, type Operator } from '@tollgate/cli';
import { Client } from 'pg';

/**
 * The demo tenant, made through the operator API. Processes that start together on one database make one demo between
 * them: null for the others.
 */
export async function createDemoOnce(databaseUrl: string, operator: Operator): Promise<Demo | null> {
  const lock = new Client({ connectionString: databaseUrl, application_name: 'tollgate-demo' });
  await lock.connect();
  try {
    await lock.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-demo', 0))`);
    return await createDemo(new OperatorClient(operator));
  } finally {
    await lock.end();
  }
}
