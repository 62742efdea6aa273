import { Text, Title } from '@mantine/core';
import type { MemberList, TenantAction } from '../../../src/api/answers';
import { DataTable } from '../parts/page';

/** A new action needs its words here, or the check of types fails. */
const WORDS: Record<TenantAction, string> = {
  'tenant.read': 'open the tenant',
  'usage.read': 'see usage and spend',
  'requests.read': 'see requests',
  'models.read': 'see models and prices',
  'models.try': 'try models in the console',
  'keys.read': 'see keys',
  'keys.write': 'create, change, rotate and revoke keys',
  'tokens.read': 'see management tokens',
  'tokens.write': 'create and revoke management tokens',
  'credit.read': 'see credit, receipts and invoices',
  'budgets.read': 'see budgets',
  'budgets.write': 'change budgets',
  'audit.read': 'see the audit log',
  'members.read': 'see members and invitations',
  'members.write': 'invite and remove members, and change their roles',
  'members.recover': 'make password links for members',
};

/** Each role beside each thing that it may do, as the backend decides it. */
export function RoleTable({ roles }: Pick<MemberList, 'roles'>) {
  const actions = Object.keys(WORDS) as TenantAction[];
  return (
    <>
      <Title order={2} size="h4">
        What each role may do
      </Title>
      <DataTable
        label="What each role may do"
        head={['May', ...roles.map(({ role }) => role)]}
        rows={actions.map((action) => [
          WORDS[action],
          ...roles.map((of) => (of.actions.includes(action) ? 'yes' : '–')),
        ])}
      />
      <Text size="sm">
        Only an owner makes, changes and removes owners. An operator may do all of it in every tenant.
      </Text>
    </>
  );
}
