import type { ExpectedEnd } from '../operations/expected-ends';
import type { Connections } from './connections';
import { texts } from './sql-arrays';

/** The call of expected_ends (functions/hold_lengths.sql). */
export async function callExpectedEnds(
  connections: Connections,
  tenantIds: readonly string[],
  nowMs: number | null,
): Promise<ExpectedEnd[][]> {
  const rows = await connections.call({
    name: 'expected_ends',
    text: 'SELECT * FROM expected_ends($1,$2)',
    values: [nowMs, texts(tenantIds, (tenantId) => tenantId)],
  });
  const answers: ExpectedEnd[][] = tenantIds.map(() => []);
  for (const [n, keyId, endsInMs] of rows) answers[Number(n) - 1]!.push({ keyId: keyId!, endsInMs: Number(endsInMs) });
  return answers;
}
