import type { ReconcileReport, TenantRepair } from '@tollgate/contracts';
import { agrees } from '../command/agrees';
import type { Context } from '../command/context';
import { tenantPath } from '../command/operator-client';
import { counted, table } from '../command/table';

const TIMEOUT_MS = 30_000;

/**
 * Rebuilds the admission store's state of a tenant from the books. Shows the changes, then makes them. With `dryRun` it
 * only shows them.
 */
export async function repairTenant({ client, output }: Context, tenantId: string, dryRun: boolean): Promise<void> {
  const planned = await ask({ client }, tenantId, true);
  if (dryRun) return output.answer(planned, `${changes(planned)}\nNothing was changed.`);
  if (!output.json) output.note(changes(planned));
  const done = await ask({ client }, tenantId, false);
  const dropped =
    done.droppedHolds > 0 ? ` ${counted(done.droppedHolds, 'hold')} could not be read and were dropped.` : '';
  output.answer(done, `Repaired from the books.${dropped}`);
}

/** Repairs the tenants with findings, if the person agrees. False if there are none, or the person disagrees. */
export async function repairAll(context: Context, report: ReconcileReport, yes: boolean): Promise<boolean> {
  const { client, output } = context;
  const ids = [...new Set(report.differences.map(({ tenantId }) => tenantId))].filter((id) => id !== '').sort();
  const planned: TenantRepair[] = [];
  for (const id of ids) {
    const plan = await ask({ client }, id, true);
    if (plan.changes.length > 0) planned.push(plan);
  }
  if (planned.length === 0) {
    output.note('The admission store agrees with the books: there is nothing to repair.');
    return false;
  }
  for (const plan of planned) output.note(changes(plan));
  if (
    !yes &&
    !(await agrees(
      `Repair ${counted(planned.length, 'tenant')} from the books?`,
      'give --yes to repair without asking.',
    ))
  )
    return false;
  for (const { tenantId } of planned) {
    const done = await ask({ client }, tenantId, false);
    output.note(
      `${tenantId}: repaired.${done.droppedHolds > 0 ? ` ${counted(done.droppedHolds, 'hold')} dropped.` : ''}`,
    );
  }
  return true;
}

async function ask({ client }: Pick<Context, 'client'>, tenantId: string, dryRun: boolean): Promise<TenantRepair> {
  const path = tenantPath(tenantId, '/repair');
  return (await client.post<{ data: TenantRepair }>(path, { dryRun }, TIMEOUT_MS)).data;
}

function changes({ tenantId, changes: all }: TenantRepair): string {
  const rows = all.map(({ what, from, to }) => [what, from, to]);
  const head = ['WHAT', 'IN THE ADMISSION STORE', 'BY THE BOOKS'];
  return `${tenantId}:\n${table(head, rows, 'The admission store agrees with the books.')}`;
}
