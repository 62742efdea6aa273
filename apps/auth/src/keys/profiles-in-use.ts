import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { PlannedProfiles } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { ConfigSource, StartError } from '@tollgate/runtime';
import { AuthDataSource } from '../database';

interface UsedProfile {
  plan: string;
  profile: string;
  keys: number;
  tenant: string;
}

/**
 * If the configuration lacks the plan or profile of an active key, a valid key would be refused. That is a mistake of
 * the operator, so such a configuration is refused, at the start and while running.
 */
@Injectable()
export class ProfilesInUse implements OnModuleInit {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly config: ConfigSource,
  ) {}

  /** Rejects with StartError. */
  async onModuleInit(): Promise<void> {
    // Before anything is awaited: the file may change meanwhile.
    this.config.addCheck((next) => this.missingIn(next));
    const missing = await this.missingIn(this.config.current);
    if (missing.length > 0) throw new StartError(missing.join('\n'));
  }

  /**
   * One line for each profile that active keys have and this configuration lacks. Rejects when the database does not
   * answer.
   */
  async missingIn({ plans }: { plans: readonly PlannedProfiles[] }): Promise<string[]> {
    const used = await query<UsedProfile>(
      this.dataSource,
      `SELECT t.plan, c.profile, count(*)::int AS keys, min(t.id) AS tenant
       FROM credential c JOIN tenant t ON t.id = c.tenant_id
       WHERE c.kind = 'key' AND c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > now())
       GROUP BY t.plan, c.profile ORDER BY t.plan, c.profile`,
    );
    return used
      .filter(({ plan, profile }) => !plans.find(({ id }) => id === plan)?.profiles.some(({ id }) => id === profile))
      .map(
        ({ plan, profile, keys, tenant }) =>
          `plans: profile ${profile} of plan ${plan} is missing, but active keys use it (${keys} in total, e.g. ` +
          `of ${tenant}). Restore it, or revoke the keys first (tollgate key revoke).`,
      );
  }
}
