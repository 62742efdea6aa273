import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { Me, TenantAction, TenantOfPerson, TenantRole } from '../../../src/api/answers';
import { api, pathOf } from './api';
import { ME } from './queries';

const FRESH_MS = 30_000;

/** The person who is signed in. Rejects with `unauthenticated`. */
export const useMe = () => useQuery({ queryKey: ME, queryFn: () => api.get<Me>('/me'), staleTime: FRESH_MS });

/** The person within the shell, which shows a page only when it knows the person. */
export function usePerson(): Me {
  const { data } = useMe();
  if (!data) throw new Error('the shell shows no page before it knows the person');
  return data;
}

/** The tenant of the page. An operator sees tenants without being a member: then there is only the id. */
export function useTenant() {
  const { tenantId = '' } = useParams({ strict: false });
  const { tenants, isOperator } = usePerson();
  const tenant: TenantOfPerson | undefined = tenants.find(({ id }) => id === tenantId);
  return {
    id: tenantId,
    tenant,
    /** Hides what the backend would refuse. */
    may: (action: TenantAction) => isOperator || tenant?.actions.includes(action) === true,
    /** Whether the person may give, change and remove the role of others. */
    mayGrant: (role: TenantRole) => isOperator || tenant?.grants.includes(role) === true,
    path: (...rest: string[]) => pathOf('tenants', tenantId, ...rest),
  };
}
