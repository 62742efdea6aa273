import { Controller, Get } from '@nestjs/common';
import { ifFound, type TenantRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import { AnySignedIn, FromCaller, type Caller } from '../../access/allow';
import { Members } from '../../access/members';
import { People } from '../../access/people';
import { actionsOf, grantsOf, type Role } from '../../access/roles';
import type { Me, TenantOfPerson } from '../answers';
import { ApiAddresses } from '../api-addresses';

/** The person who is signed in. */
@Controller('console/api')
export class MeController {
  constructor(
    private readonly services: ServiceClient,
    private readonly members: Members,
    private readonly people: People,
    private readonly config: ConfigSource,
    private readonly addresses: ApiAddresses,
  ) {}

  @Get('me')
  @AnySignedIn()
  async me(@FromCaller() { userId, name, email, hasTotp, isOperator }: Caller): Promise<Me> {
    const [tenants, hasPassword] = await Promise.all([
      this.tenantsOf(userId, isOperator),
      this.people.hasPassword(userId),
    ]);
    const { inferenceUrl, managementUrl } = this.addresses;
    const { currency } = this.config.current;
    return { name, email, hasPassword, hasTotp, isOperator, tenants, inferenceUrl, managementUrl, currency };
  }

  private async tenantsOf(userId: string, isOperator: boolean): Promise<TenantOfPerson[]> {
    const memberships = await this.members.tenantsOf(userId);
    const found = await Promise.all(
      memberships.map(async ({ tenantId, role: own }) => {
        const tenant = await this.tenant(tenantId);
        const role: Role = isOperator ? 'operator' : own;
        const rights = { role, actions: actionsOf(role), grants: grantsOf(role) };
        return tenant && { id: tenantId, name: tenant.name, status: tenant.status, ...rights };
      }),
    );
    return found.filter((tenant) => tenant !== null);
  }

  /** Null: groups of a provider may name a tenant that does not exist. */
  private tenant(tenantId: string): Promise<TenantRow | null> {
    return ifFound(this.services.request('auth.tenants.get', { tenantId }));
  }
}
