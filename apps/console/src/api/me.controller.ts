import { Controller, Delete, Get, HttpCode, Param } from '@nestjs/common';
import { RequestError, type TenantRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { changedRows, query } from '@tollgate/postgres';
import { ConfigSource } from '@tollgate/runtime';
import { AnySignedIn, FromCaller, type Caller } from '../access/allow';
import { Members } from '../access/members';
import { actionsOf, type Role } from '../access/roles';
import { ConsoleDatabase } from '../database';
import { ConsoleError } from '../http/errors';
import type { Me, SessionRow } from './answers';
import { ApiAddresses } from './api-addresses';

/** The person who is signed in, and the person's sessions. */
@Controller('console/api')
export class MeController {
  constructor(
    private readonly services: ServiceClient,
    private readonly members: Members,
    private readonly database: ConsoleDatabase,
    private readonly config: ConfigSource,
    private readonly addresses: ApiAddresses,
  ) {}

  @Get('me')
  @AnySignedIn()
  async me(@FromCaller() { userId, name, email, hasTotp, isOperator }: Caller): Promise<Me> {
    const memberships = await this.members.tenantsOf(userId);
    const found = await Promise.all(
      memberships.map(async ({ tenantId, role: own }) => {
        const tenant = await this.tenant(tenantId);
        const role: Role = isOperator ? 'operator' : own;
        return tenant && { id: tenantId, name: tenant.name, status: tenant.status, role, actions: actionsOf(role) };
      }),
    );
    const tenants = found.filter((tenant) => tenant !== null);
    const { inferenceUrl, managementUrl } = this.addresses;
    const { currency } = this.config.current;
    return { name, email, hasTotp, isOperator, tenants, inferenceUrl, managementUrl, currency };
  }

  /** Null: groups of a provider may name a tenant that does not exist. */
  private async tenant(tenantId: string): Promise<TenantRow | null> {
    try {
      return await this.services.request('auth.tenants.get', { tenantId });
    } catch (error) {
      if (error instanceof RequestError && error.code === 'not_found') return null;
      throw error;
    }
  }

  /** Without the secrets of the sessions, which the library's own list has. */
  @Get('sessions')
  @AnySignedIn()
  async sessions(@FromCaller() { userId, sessionId }: Caller): Promise<{ data: SessionRow[] }> {
    const rows = await query<{
      id: string;
      address: string | null;
      browser: string | null;
      createdAt: Date;
      expiresAt: Date;
    }>(
      this.database.dataSource,
      `SELECT "id", "ipAddress" AS address, "userAgent" AS browser, "createdAt", "expiresAt" FROM "session"
       WHERE "userId" = $1 AND "expiresAt" > now() ORDER BY "createdAt" DESC, "id"`,
      [userId],
    );
    return {
      data: rows.map((row) => ({
        ...row,
        isCurrent: row.id === sessionId,
        createdAt: row.createdAt.toISOString(),
        expiresAt: row.expiresAt.toISOString(),
      })),
    };
  }

  @Delete('sessions/:id')
  @AnySignedIn()
  @HttpCode(204)
  async endSession(@FromCaller() { userId }: Caller, @Param('id') id: string): Promise<void> {
    const ended = await changedRows(
      this.database.dataSource,
      'DELETE FROM "session" WHERE "id" = $1 AND "userId" = $2',
      [id, userId],
    );
    if (ended === 0) throw new ConsoleError('not_found');
  }
}
