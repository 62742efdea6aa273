/** The roles of a person in a tenant. A person can have a different one in each tenant. */
export const TENANT_ROLES = ['owner', 'admin', 'billing', 'member', 'viewer'] as const;
export type TenantRole = (typeof TENANT_ROLES)[number];

/** `operator` runs the whole installation. In a tenant, it may do what an owner may. */
export type Role = 'operator' | TenantRole;

const ALL: readonly TenantRole[] = TENANT_ROLES;

/** The only table of what each role may do in its tenant. An operator may do everything. */
export const TENANT_ACTIONS = {
  'tenant.read': ALL,
  'usage.read': ALL,
  'requests.read': ALL,
  'models.read': ALL,
  'models.try': ['owner', 'admin', 'member'],
  'keys.read': ALL,
  'keys.write': ['owner', 'admin', 'member'],
  'tokens.read': ['owner', 'admin'],
  'tokens.write': ['owner', 'admin'],
  'credit.read': ['owner', 'admin', 'billing'],
  'budgets.read': ['owner', 'admin', 'billing'],
  'budgets.write': ['owner', 'admin', 'billing'],
  'audit.read': ['owner', 'admin'],
  'members.read': ['owner', 'admin'],
  'members.write': ['owner', 'admin'],
  'members.recover': ['owner'],
} as const satisfies Record<string, readonly TenantRole[]>;

export type TenantAction = keyof typeof TENANT_ACTIONS;
/** What only an operator may do. */
export type OperatorAction =
  | 'tenants.read'
  | 'tenants.write'
  | 'credit.write'
  | 'books.check'
  | 'invoices.read'
  | 'configuration.read'
  | 'audit.read'
  | 'people.read'
  | 'people.write';

/** Whether a role may do something in its tenant. */
export function mayDo(role: Role, action: TenantAction): boolean {
  return role === 'operator' || (TENANT_ACTIONS[action] as readonly Role[]).includes(role);
}

/** Every action of a role in a tenant: the user interface hides the others. */
export function actionsOf(role: Role): TenantAction[] {
  return (Object.keys(TENANT_ACTIONS) as TenantAction[]).filter((action) => mayDo(role, action));
}

/** Every role that a role may give in its tenant: the user interface offers no others. */
export const grantsOf = (role: Role): TenantRole[] => TENANT_ROLES.filter((granted) => mayGrant(role, granted));

/** Whether a role may give, change or remove another. Only an owner may make owners. */
export function mayGrant(role: Role, granted: TenantRole): boolean {
  return mayDo(role, 'members.write') && (granted !== 'owner' || role === 'owner' || role === 'operator');
}
