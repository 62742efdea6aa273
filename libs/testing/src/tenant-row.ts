/** An active tenant without special features, as auth describes it (`TenantRow` of the contracts). */
export function tenantRow(id: string, name = 'Test') {
  return {
    id,
    name,
    plan: 'default',
    status: 'active' as const,
    createdAt: new Date(0).toISOString(),
    externalId: null,
    closedAt: null,
    erasedAt: null,
  };
}
