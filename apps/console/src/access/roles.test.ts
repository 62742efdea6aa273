import { actionsOf, mayDo, mayGrant, TENANT_ACTIONS, TENANT_ROLES, type Role, type TenantAction } from './roles';

/**
 * Written out once more on purpose: a change of the table must be meant. O owner, A admin, B billing, M member, V
 * viewer.
 */
const MATRIX: Readonly<Record<TenantAction, string>> = {
  'tenant.read': 'OABMV',
  'usage.read': 'OABMV',
  'requests.read': 'OABMV',
  'models.read': 'OABMV',
  'models.try': 'OAM',
  'keys.read': 'OABMV',
  'keys.write': 'OAM',
  'tokens.read': 'OA',
  'tokens.write': 'OA',
  'credit.read': 'OAB',
  'budgets.read': 'OAB',
  'budgets.write': 'OAB',
  'audit.read': 'OA',
  'members.read': 'OA',
  'members.write': 'OA',
  'members.recover': 'O',
};

const letterOf = (role: Role) => role[0]!.toUpperCase();

it.each(TENANT_ROLES)('the role %s may do exactly what the matrix says', (role) => {
  const allowed = (Object.keys(MATRIX) as TenantAction[]).filter((action) => MATRIX[action].includes(letterOf(role)));
  expect(actionsOf(role)).toEqual(allowed);
});

it('an operator may do everything in every tenant', () => {
  for (const action of Object.keys(TENANT_ACTIONS) as TenantAction[]) expect(mayDo('operator', action)).toBe(true);
});

it('only owners and operators make owners, and only those who may change members give roles', () => {
  const givers = (granted: (typeof TENANT_ROLES)[number]) =>
    (['operator', ...TENANT_ROLES] as Role[]).filter((role) => mayGrant(role, granted));
  expect(givers('owner')).toEqual(['operator', 'owner']);
  for (const role of ['admin', 'billing', 'member', 'viewer'] as const)
    expect(givers(role)).toEqual(['operator', 'owner', 'admin']);
});
