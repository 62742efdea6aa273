import { PostgresAdmissionStore } from '@tollgate/admission';
import { MAX_ENTRY_CENTS, newId } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { TenantStatus } from '../tenants/tenant-status';
import { CENT, charge, expectBooksToProve, useBilling } from '../testing/billing.fixture';
import { awaitWaiting, holdBooks } from '../testing/held-books.fixture';
import { TopUps } from './top-ups';

// Real: PostgreSQL and messages. Auth's answer is the test's own.
const database = useTestDatabase();

describe('a top-up', () => {
  const now = () => new Date('2031-10-31T23:59:59.999Z');
  const billing = useBilling(database, { now });
  const add = (tenantId: string, amountCents: number, ref: string, source = 'stripe') =>
    billing.topUps.add({ tenantId, amountCents, source, ref }).then(({ reply }) => reply);

  it('books a balanced entry and publishes the new balance in the same transaction', async () => {
    const tenantId = newId('ten');
    const { entry, balanceCents } = await add(tenantId, 1_000, 'pi_1');
    expect(balanceCents).toBe(1_000);
    expect(entry).toEqual({
      id: expect.stringMatching(/^ent_/),
      type: 'topup',
      amountCents: 1_000,
      source: 'stripe',
      ref: 'pi_1',
      createdAt: expect.stringMatching(/\.\d{3}Z$/),
    });
    // By the service's clock, not the machine's.
    expect(await billing.entries(tenantId)).toMatchObject([{ period: '2031-10' }]);
    expect(await billing.updates(tenantId)).toEqual([
      { tenantId, version: '1', balanceNanos: String(1_000n * CENT), releases: [], suspended: false },
    ]);
    expect(
      await database.query(
        'SELECT account, amount_cents::int AS cents FROM billing.posting WHERE entry_id = $1 ORDER BY 1',
        [entry.id],
      ),
    ).toEqual([
      { account: 'credit', cents: 1_000 },
      { account: 'payments_clearing', cents: -1_000 },
    ]);
  });

  it('that is repeated with the same source and ref returns the first entry, also at once, and says so', async () => {
    const tenantId = newId('ten');
    const replies = await Promise.all(Array.from({ length: 12 }, () => add(tenantId, 500, 'pi_2')));
    expect(replies.filter(({ created }) => created)).toHaveLength(1);
    const repeat = { ...replies[0]!, created: false };
    for (const reply of replies) expect({ ...reply, created: false }).toEqual(repeat);
    expect(await billing.entries(tenantId)).toHaveLength(1);
    expect(await billing.updates(tenantId)).toHaveLength(1);
    await add(tenantId, 7, 'pi_3');
    expect(await add(tenantId, 500, 'pi_2')).toEqual(repeat);
  });

  it('of a closed tenant is refused, but its repeats are answered and its late charges are booked', async () => {
    const tenantId = newId('ten');
    const first = await add(tenantId, 500, 'pi_2');
    billing.closedTenants.add(tenantId);
    await expect(add(tenantId, 500, 'pi_9')).rejects.toMatchObject({ code: 'tenant_closed' });
    expect(await add(tenantId, 500, 'pi_2')).toEqual({ ...first, created: false });
    const late = [charge(tenantId, 3n * CENT, { endedAt: now().toISOString() })];
    await billing.gatherer.gather(late);
    await billing.poster.postDue();
    expect(await billing.entries(tenantId)).toMatchObject([{ amount: 500 }, { type: 'usage', amount: -3 }]);
    await expectBooksToProve(billing, late);
  });

  it('that waited for the books while its tenant was closed is refused', async () => {
    const tenantId = await billing.tenant(500);
    const held = await holdBooks(database, billing.dataSource, tenantId);
    const refused = expect(add(tenantId, 700, 'pi_5')).rejects.toMatchObject({ code: 'tenant_closed' });
    await held.awaitWaiting(1);
    billing.closedTenants.add(tenantId);
    await held.release();
    await refused;
    expect(await billing.entries(tenantId)).toMatchObject([{ amount: 500 }]);
  });

  it('that finds its tenant open is booked before the closing of the tenant is answered', async () => {
    const tenantId = await billing.tenant(500);
    const store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await store.start();
    const status = new TenantStatus(billing.dataSource, store, { postingIntervalMs: 0 });
    let asked = 0;
    let told = Promise.resolve();
    const order: string[] = [];
    const closing: Requests = {
      request: async (subject, request, options) => {
        const answer = await billing.messages.request(subject, request, options);
        // Closed right after auth answered, while the top-up has the lock.
        if (++asked === 2) {
          billing.closedTenants.add(tenantId);
          told = status.enforce({ tenantId, version: 1, status: 'suspended' }).then(() => void order.push('told'));
          await awaitWaiting(database, 1);
        }
        return answer;
      },
    };
    try {
      const topUps = new TopUps(billing.dataSource, closing, { postingIntervalMs: 0, now });
      await topUps.add({ tenantId, amountCents: 700, source: 'stripe', ref: 'pi_6' });
      order.push('booked');
      await told;
      expect(order).toEqual(['booked', 'told']);
    } finally {
      await store.close();
    }
    await expect(add(tenantId, 1, 'pi_7')).rejects.toMatchObject({ code: 'tenant_closed' });
    expect(await billing.entries(tenantId)).toMatchObject([{ amount: 500 }, { amount: 700 }]);
  });

  it('is refused with a ref of another amount, but another source or tenant may use that ref', async () => {
    const tenantId = newId('ten');
    await add(tenantId, 500, 'pi_4');
    await expect(add(tenantId, 501, 'pi_4')).rejects.toMatchObject({ code: 'ref_conflict' });
    expect((await add(tenantId, 501, 'pi_4', 'manual')).balanceCents).toBe(1_001);
    expect((await add(newId('ten'), 501, 'pi_4')).balanceCents).toBe(501);
  });

  it.each([0, -5, 1.5, NaN, Infinity, '5', null, undefined, MAX_ENTRY_CENTS + 1, 2 ** 53])(
    'of %p cents is refused and writes nothing',
    async (amount) => {
      const tenantId = newId('ten');
      await expect(add(tenantId, amount as number, 'x')).rejects.toMatchObject({ code: 'invalid_amount' });
      expect(await database.query('SELECT FROM billing.tenant_books WHERE tenant_id = $1', [tenantId])).toEqual([]);
    },
  );

  it('that would take the balance beyond 2^53 - 1 cents is refused', async () => {
    const tenantId = newId('ten');
    await database.query(`BEGIN`);
    await database.query(`INSERT INTO billing.tenant_books (tenant_id) VALUES ($1)`, [tenantId]);
    await database.query(
      `INSERT INTO billing.journal_entry
       VALUES ('ent_' || $1, $1, 1, 'adjustment', 9007199254740990, 'manual', 'a', sha256('x'), '2026-11',
         9007199254740990, now(), 'test')`,
      [tenantId],
    );
    await database.query(
      `INSERT INTO billing.posting
       VALUES ('ent_' || $1, 'credit', 9007199254740990), ('ent_' || $1, 'adjustments', -9007199254740990)`,
      [tenantId],
    );
    await database.query(
      `UPDATE billing.tenant_books SET balance_cents = 9007199254740990, last_sequence = 1 WHERE tenant_id = $1`,
      [tenantId],
    );
    await database.query(`COMMIT`);
    await expect(add(tenantId, 2, 'b')).rejects.toMatchObject({ code: 'invalid_amount' });
    expect(await add(tenantId, 1, 'c')).toMatchObject({ balanceCents: Number.MAX_SAFE_INTEGER });
  });

  it.each([
    ['metering', 'r'],
    ['', 'r'],
    ['s'.repeat(65), 'r'],
    ['stripe', ''],
    ['stripe', 'r'.repeat(201)],
    ['stripe', 'nul\0'],
    ['stripe', 5 as unknown as string],
  ])('with source %p and ref %p is refused', async (source, ref) => {
    await expect(add(newId('ten'), 5, ref, source)).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  it('for a tenant that auth does not know is refused and writes nothing', async () => {
    const tenantId = newId('ten');
    billing.unknownTenants.add(tenantId);
    await expect(add(tenantId, 5, 'x')).rejects.toMatchObject({ code: 'not_found' });
    expect(await database.query('SELECT FROM billing.tenant_books WHERE tenant_id = $1', [tenantId])).toEqual([]);
  });

  it('stays right beside concurrent charges and postings of the same tenants', async () => {
    const tenants = await Promise.all(Array.from({ length: 20 }, () => billing.tenant(1_000)));
    const charges = tenants.flatMap((tenantId) =>
      Array.from({ length: 10 }, (_, i) => charge(tenantId, BigInt(i) * 9_876_543n)),
    );
    const work: (() => Promise<unknown>)[] = [];
    for (let i = 0; i < charges.length; i += 25) {
      work.push(
        () => billing.gatherer.gather(charges.slice(i, i + 40)),
        () => billing.poster.postDue(),
      );
    }
    for (const tenantId of tenants)
      for (const [cents, ref] of [
        [100, 'a'],
        [100, 'a'],
        [11, 'b'],
      ] as const)
        work.push(() => add(tenantId, cents, ref));
    // All kinds in a mixed order (seven does not divide their number, so each comes once), and never more at once than
    // there are connections.
    let next = 0;
    const worker = async () => {
      while (next < work.length) await work[(next++ * 7) % work.length]!();
    };
    await Promise.all(Array.from({ length: 10 }, worker));
    await billing.poster.postDue();
    await expectBooksToProve(billing, charges);
    for (const tenantId of tenants) {
      const entries = await billing.entries(tenantId);
      expect(
        entries
          .filter((entry) => entry.type === 'topup')
          .map((entry) => entry.amount)
          .sort(),
      ).toEqual([100, 1_000, 11].sort());
    }
  });
});
