import { Injectable } from '@nestjs/common';
import { RequestError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';

/** Removes operators. Their sessions stay, and each call checks again whether its person is an operator. */
@Injectable()
export class Operators {
  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly services: ServiceClient,
  ) {}

  /**
   * RequestError: not_found, also for an operator by a group of the provider, who would be one again at the next
   * sign-in; last_operator. The row in the audit log comes first, so there is none without it.
   */
  async remove({ email, by }: RequestOf<'console.operators.remove'>): Promise<ReplyOf<'console.operators.remove'>> {
    return transaction(this.dataSource, async (tx) => {
      await lockOperators(tx);
      const [person] = await query<{ userId: string; name: string }>(
        tx,
        `SELECT u.id AS "userId", u.email AS name FROM operator o JOIN "user" u ON u.id = o.user_id
         WHERE u.email = $1`,
        [email.toLowerCase()],
      );
      if (!person) throw new RequestError('not_found', 'This person was not made an operator by invitation.');
      const { userId, name } = person;
      const others = await query(tx, 'SELECT 1 FROM operator WHERE user_id <> $1 LIMIT 1', [userId]);
      if (others.length === 0) throw new RequestError('last_operator');
      await query(tx, 'DELETE FROM operator WHERE user_id = $1', [userId]);
      const change = { action: 'operator.remove', target: userId, before: { name } } as const;
      await this.services.request('auth.audit.record', { ...change, ...(by && { by }) });
      return { userId };
    });
  }
}

/**
 * If two operators leave at the same time, one must remain. A lock of the table would also stop the end of any other
 * account.
 */
export async function lockOperators(tx: EntityManager): Promise<void> {
  await query(tx, `SELECT pg_advisory_xact_lock(hashtextextended('tollgate-console-operators', 0))`);
}
