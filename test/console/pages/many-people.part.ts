import type { TestDatabase } from '@tollgate/testing';
import { openPage } from '../browser/looks';
import type { OnPage } from '../running/deployed';

/** One more than a page of a list has. */
const MANY = 51;

/** A tenant with more members, and a person with more sessions, than a page of a list has. */
export function manyPeopleTests(deployed: () => OnPage & { database: Pick<TestDatabase, 'query'> }): void {
  it('members and sessions behind the first page are shown', async () => {
    const { console_, page, call, database } = deployed();
    const { id } = (await call('operator/tenants', { name: 'Crowd' })) as { id: string };
    await database.query(
      `WITH made AS (
         INSERT INTO console."user" (id, name, email, "emailVerified")
         SELECT 'many-' || n, 'many-' || n, 'many-' || n || '@many.example', true FROM generate_series(1, $2) n
         RETURNING id)
       INSERT INTO console.membership (user_id, tenant_id, role, created_at)
       SELECT id, $1, 'viewer', '2026-01-01Z'::timestamptz + substr(id, 6)::int * interval '1 second' FROM made`,
      [id, MANY],
    );
    await openPage(page, { base: console_.base, tenantId: id }, ['settings/members', 'Members']);
    await page.getByRole('row', { name: /^many-50 / }).waitFor();
    const last = page.getByRole('row', { name: new RegExp(`^many-${MANY} `) });
    expect(await last.count()).toBe(0);
    await page.getByRole('button', { name: 'More members' }).click();
    await last.waitFor();
    expect(await page.getByRole('button', { name: 'More members' }).count()).toBe(0);

    await database.query(
      `INSERT INTO console."session" ("id", "token", "userId", "ipAddress", "createdAt", "updatedAt", "expiresAt")
       SELECT 'many-' || n, 'many-' || n, user_id, '192.0.2.' || n, '2026-01-01Z', now(), now() + interval '1 day'
       FROM console.operator, generate_series(1, $1) n`,
      [MANY],
    );
    await openPage(page, { base: console_.base, tenantId: id }, ['/account', 'Account']);
    // By its id, the last one of the same time.
    const oldest = page.getByRole('row', { name: / 192\.0\.2\.1 / });
    expect(await oldest.count()).toBe(0);
    await page.getByRole('button', { name: 'Older sessions' }).click();
    await oldest.waitFor();
    await database.query(`DELETE FROM console."session" WHERE "id" LIKE 'many-%'`);
    await database.query(`DELETE FROM console."user" WHERE id LIKE 'many-%'`);
  });
}
