import { createDemo, OperatorClient, type Demo, type Operator } from '@tollgate/cli';
import { Client } from 'pg';

/**
 * Creates the demo tenant through the operator API. Processes that start together on one database create one demo
 * between them; the others get null.
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
