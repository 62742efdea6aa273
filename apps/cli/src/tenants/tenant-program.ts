import { type Command, InvalidArgumentError } from 'commander';
import type { Context } from '../command/context';
import { UsageFailure } from '../command/failure';
import { group, leaf } from '../command/leaf';
import { pick } from '../command/options';
import { repairTenant } from '../reconcile/repair';
import * as commands from './tenant-commands';

/** Customers: from their creation to their end. */
export function addTenantCommands(program: Command, context: (options: object) => Context): void {
  const tenant = group(program, 'tenant', 'customers', 'tenant create acme', 'tenant list', 'tenant show ten_01k…');
  leaf(
    tenant,
    'create <name>',
    'create a tenant',
    'tenant create acme',
    'tenant create acme --plan default --external-id crm-4711 --json',
  )
    .option('--plan <plan>', 'plan of tollgate.yaml (default: the first one)')
    .option('--external-id <id>', 'your own id of the tenant, unique')
    .action((name: string, options: { plan?: string; externalId?: string }) =>
      commands.createTenant(context(options), { name, ...pick(options, 'plan', 'externalId') }),
    );
  leaf(tenant, 'list', 'list all tenants, newest first', 'tenant list', 'tenant list --external-id crm-4711')
    .option('--external-id <id>', 'only the tenant with this external id')
    .action((options: { externalId?: string }) => commands.listTenants(context(options), options.externalId));
  leaf(tenant, 'show <tenant>', 'show a tenant with its credit and keys', 'tenant show ten_01k…').action(
    (id: string, options: object) => commands.showTenant(context(options), id),
  );
  leaf(
    tenant,
    'rename <tenant> [name]',
    'change name or external id of a tenant',
    'tenant rename ten_01k… "Acme Ltd"',
    'tenant rename ten_01k… --external-id crm-4712',
  )
    .option('--external-id <id>', 'your own id of the tenant, unique')
    .option('--no-external-id', 'remove it')
    .action((id: string, name: string | undefined, options: { externalId?: string | boolean }) => {
      const { externalId } = options;
      const changes = {
        ...(name !== undefined && { name }),
        ...(externalId === false ? { externalId: null } : typeof externalId === 'string' && { externalId }),
      };
      if (Object.keys(changes).length === 0) throw new UsageFailure('Give a name, --external-id or --no-external-id.');
      return commands.updateTenant(context(options), id, changes);
    });
  leaf(
    tenant,
    'set-plan <tenant> <plan>',
    'change the plan of a tenant; the limits apply within a second',
    'tenant set-plan ten_01k… pro',
    'tenant set-plan ten_01k… pro --profile batch=default',
  )
    .option(
      '--profile <from=to>',
      'move keys from a profile that the new plan lacks to one that it has; repeatable',
      mapping,
    )
    .action((id: string, plan: string, options: { profile?: Record<string, string> }) =>
      commands.updateTenant(context(options), id, {
        plan,
        ...(options.profile && { profiles: options.profile }),
      }),
    );
  leaf(
    tenant,
    'suspend <tenant>',
    'refuse new requests of a tenant (402) within a second; running ones finish, and its books stay readable',
    'tenant suspend ten_01k…',
  ).action((id: string, options: object) => commands.setStatus(context(options), id, 'suspend'));
  leaf(tenant, 'resume <tenant>', 'accept requests of a suspended tenant again', 'tenant resume ten_01k…').action(
    (id: string, options: object) => commands.setStatus(context(options), id, 'resume'),
  );
  leaf(
    tenant,
    'close <tenant>',
    'close a tenant for good: revokes its keys and tokens; usage, ledger and invoices stay',
    'tenant close ten_01k… --refund --ref end-4711',
    'tenant close ten_01k… --write-off --ref end-4711 --reason "contract ended" --yes',
  )
    .option('--refund', 'refund the remaining credit')
    .option('--write-off', 'write off the remaining credit or debt')
    .option('--ref <text>', 'your reference of the entry; a repeat with the same one books nothing more')
    .option('--source <name>', 'the payment provider (default: manual)')
    .option('--reason <text>', 'reason, recorded in the books')
    .option('--yes', "do not ask for the tenant's name")
    .action((id: string, options: commands.CloseOptions) => commands.closeTenant(context(options), id, options));
  leaf(
    tenant,
    'erase <tenant>',
    'erase the personal data of a closed tenant: names, owners, tags, external id; cannot be undone',
    'tenant erase ten_01k…',
    'tenant erase ten_01k… --yes',
  )
    .option('--yes', "do not ask for the tenant's name")
    .action((id: string, options: { yes?: boolean }) =>
      commands.eraseTenant(context(options), id, options.yes === true),
    );
  leaf(
    tenant,
    'repair <tenant>',
    'restore the admission state of a tenant from the books: shows the changes, then makes them',
    'tenant repair ten_01k… --dry-run',
    'tenant repair ten_01k…',
  )
    .option('--dry-run', 'only show what would change')
    .action((id: string, options: { dryRun?: boolean }) => repairTenant(context(options), id, options.dryRun === true));
}

function mapping(text: string, former: Record<string, string> = {}): Record<string, string> {
  const [from, to, more] = text.split('=');
  if (!from || !to || more !== undefined) throw new InvalidArgumentError('It must have the form batch=default.');
  return { ...former, [from]: to };
}
