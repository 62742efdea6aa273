import { createDemo, OperatorClient, type Demo, type Operator } from '@tollgate/cli';
import { withClient } from '@tollgate/postgres';

/**
 * Creates the demo tenant through the operator API. Processes that start together on one database create one demo
 * between them; the others get null.
 */
export function createDemoOnce(databaseUrl: string, operator: Operator): Promise<Demo | null> {
  const applicationName = 'tollgate-demo';
  return withClient({ url: databaseUrl, schema: 'public', applicationName }, async (client) => {
    await client.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-demo', 0))`);
    return createDemo(new OperatorClient(operator));
  });
}
