import { newId, type UsageEvent } from '@tollgate/contracts';
import { usageEvent, type Books, type Served } from './books';
import { detailCorruptions } from './detail-cases';
import { monthCorruptions } from './month-cases';

/** Corruptions of an admission store, as a bad restore or a manual change would cause them. */
export interface Spoilers {
  /** Changes the balance in the store. */
  balance(tenantId: string, byNanos: bigint): Promise<void>;
  forget(tenantId: string): Promise<void>;
  /** Adds a hold of 5 nanos that is in no running sum. */
  pending(tenantId: string, id: string): Promise<void>;
  /** Adds a settled hold of 5 nanos with this record. With `counted`, it is also in the running sum. */
  settled(event: UsageEvent): Promise<void>;
}

export interface Corruption {
  what: string;
  /** Whether its month is closed first. */
  closed?: true;
  spoil(of: Served): Promise<unknown>;
  /** The checks that must be among the differences of the tenant, each with the ids that it must name. */
  finds: (of: Served) => [check: string, ...ids: string[]][];
  /** Whether there must be no other differences. */
  only?: true;
}

const CHARGED = 'every event is charged';
const RECORDED = 'every charge has its event';
const SAME = 'every charge is what its event says';
const HOUR = 'a roll-up of an hour is the sum of its events';
const UNKNOWN = 'the admission store knows the tenant';
const TOTAL = 'charges = usage debits + carried';
const CHAIN = 'every entry has the hash of its contents and of the entries before it';

/** Every known corruption of the books. Each gets its own tenant. */
export function allCorruptions(books: Books, spoilers: Spoilers): Corruption[] {
  const sql = (text: string, values: (of: Served) => unknown[]) => (of: Served) => books.spoil(text, values(of));
  const first = ({ ids }: Served) => [ids[0]];
  const tenant = ({ tenantId }: Served) => [tenantId];
  const newEvent = new Map<string, string>();
  const topUp = new Map<string, string>();
  return [
    {
      what: 'a missing charge',
      spoil: sql('DELETE FROM billing.charge WHERE id = $1', first),
      finds: ({ ids }) => [[CHARGED, ids[0]!], [TOTAL], ['every charge range names its charges and sums them']],
    },
    {
      what: 'all charges missing',
      spoil: sql('DELETE FROM billing.charge WHERE tenant_id = $1', tenant),
      finds: ({ ids }) => [[CHARGED, ...ids], [TOTAL]],
    },
    {
      what: 'a changed charge',
      spoil: sql('UPDATE billing.charge SET cost_nanos = cost_nanos + 1 WHERE id = $1', first),
      finds: ({ ids }) => [[SAME, ids[0]!], [TOTAL]],
    },
    {
      what: 'two changed charges with the right sum',
      spoil: async ({ ids }) => {
        await books.spoil('UPDATE billing.charge SET cost_nanos = cost_nanos + 7 WHERE id = $1', [ids[0]]);
        await books.spoil('UPDATE billing.charge SET cost_nanos = cost_nanos - 7 WHERE id = $1', [ids[1]]);
      },
      finds: ({ ids }) => [[SAME, ids[0]!, ids[1]!]],
    },
    ...detailCorruptions(books),
    {
      what: 'a charge without an event',
      spoil: sql(
        `INSERT INTO billing.charge SELECT id || 'x', tenant_id, key_id, cost_nanos, ended_at, period, 99
         FROM billing.charge WHERE id = $1`,
        first,
      ),
      finds: ({ ids }) => [[RECORDED, `${ids[0]!}x`], [TOTAL]],
    },
    {
      what: 'a doubled debit',
      spoil: sql(
        `INSERT INTO billing.journal_entry (id, tenant_id, sequence, type, amount_cents, source, ref, input_hash,
                                      period, balance_after_cents, created_at)
         SELECT 'ent_again_' || tenant_id, tenant_id, 99, type, amount_cents, source, 'again', input_hash, period,
                balance_after_cents, created_at
         FROM billing.journal_entry WHERE tenant_id = $1 AND type = 'usage' AND sequence = 2`,
        tenant,
      ),
      finds: ({ tenantId }) => [
        [TOTAL],
        ['balance = sum of entries'],
        ['every usage entry has its charge range', `ent_again_${tenantId}`],
        ['postings of an entry sum to zero', `ent_again_${tenantId}`],
      ],
    },
    {
      what: 'a changed debit',
      spoil: sql(
        `UPDATE billing.journal_entry SET amount_cents = amount_cents - 1
         WHERE tenant_id = $1 AND type = 'usage' AND sequence = 2`,
        tenant,
      ),
      finds: () => [[TOTAL], ['balance = sum of entries'], ['postings of an entry sum to zero']],
    },
    // The owner of the database can do these, and correct all sums.
    {
      what: 'a raised top-up, with its postings and every later balance',
      spoil: async ({ tenantId }) => {
        topUp.set(tenantId, await books.entryId(tenantId, 1));
        await books.spoil('UPDATE billing.journal_entry SET amount_cents = amount_cents + 500 WHERE id = $1', [
          topUp.get(tenantId),
        ]);
        await books.spoil(
          'UPDATE billing.posting SET amount_cents = amount_cents + 500 * sign(amount_cents) WHERE entry_id = $1',
          [topUp.get(tenantId)],
        );
        for (const balance of [
          'journal_entry SET balance_after_cents = balance_after_cents',
          'tenant_books SET balance_cents = balance_cents',
        ])
          await books.spoil(`UPDATE billing.${balance} + 500 WHERE tenant_id = $1`, [tenantId]);
        await spoilers.balance(tenantId, 500n * 10_000_000n);
      },
      finds: ({ tenantId }) => [[CHAIN, topUp.get(tenantId)!]],
      only: true,
    },
    {
      what: 'a debit removed from the end of the journal',
      spoil: async ({ tenantId }) => {
        const last = await books.entryId(tenantId, -1);
        for (const table of ['posting WHERE entry_id', 'coverage WHERE entry_id', 'journal_entry WHERE id'])
          await books.spoil(`DELETE FROM billing.${table} = $1`, [last]);
        await books.spoil(
          `UPDATE billing.tenant_books SET last_sequence = last_sequence - 1, last_cover = last_cover - 1
           WHERE tenant_id = $1`,
          [tenantId],
        );
      },
      finds: () => [[CHAIN], [TOTAL]],
    },
    {
      what: 'a top-up inserted between two entries',
      spoil: async ({ tenantId }) => {
        const spoil = (statement: string) => books.spoil(statement, [tenantId]);
        // In two steps over unused numbers, because each number must always be unique.
        for (const by of ['+ 1000', '- 999'])
          await spoil(
            `UPDATE billing.journal_entry SET sequence = sequence ${by} WHERE tenant_id = $1 AND sequence > 1`,
          );
        await spoil(`
          INSERT INTO billing.journal_entry
          SELECT 'ent_between_' || tenant_id, tenant_id, 2, type, amount_cents, source, 'between', input_hash, period,
                 balance_after_cents + amount_cents, created_at, reason
          FROM billing.journal_entry WHERE tenant_id = $1 AND sequence = 1`);
        await spoil(`
          INSERT INTO billing.posting SELECT 'ent_between_' || e.tenant_id, p.account, p.amount_cents
          FROM billing.posting p JOIN billing.journal_entry e ON e.id = p.entry_id
          WHERE e.tenant_id = $1 AND e.sequence = 1`);
        await spoil(`
          UPDATE billing.journal_entry SET balance_after_cents = balance_after_cents + 1000
          WHERE tenant_id = $1 AND sequence > 2`);
        await spoil(`
          UPDATE billing.tenant_books SET balance_cents = balance_cents + 1000, last_sequence = last_sequence + 1
          WHERE tenant_id = $1`);
        await spoilers.balance(tenantId, 1_000n * 10_000_000n);
      },
      finds: ({ tenantId }) => [[CHAIN, `ent_between_${tenantId}`]],
      only: true,
    },
    {
      what: 'missing books, also of the admission store',
      spoil: async ({ tenantId }) => {
        await books.spoil('DELETE FROM billing.tenant_books WHERE tenant_id = $1', [tenantId]);
        await spoilers.forget(tenantId);
      },
      finds: () => [['every tenant with entries or charges has books']],
    },
    {
      what: 'a changed balance in the books',
      spoil: sql('UPDATE billing.tenant_books SET balance_cents = balance_cents + 1 WHERE tenant_id = $1', tenant),
      finds: () => [['balance = sum of entries'], ['balance = balance of the admission store']],
    },
    {
      what: 'a changed remainder',
      spoil: sql('UPDATE billing.tenant_books SET carried_nanos = carried_nanos + 1 WHERE tenant_id = $1', tenant),
      finds: () => [
        [TOTAL],
        ['carried = remainder of the newest charge range'],
        ['balance = balance of the admission store'],
      ],
    },
    ...monthCorruptions(books),
    {
      what: 'a deleted event',
      spoil: sql('DELETE FROM metering.usage_event WHERE id = $1', first),
      finds: ({ ids }) => [[RECORDED, ids[0]!], [HOUR]],
    },
    {
      what: 'an event with another cost',
      spoil: sql('UPDATE metering.usage_event SET cost_nanos = cost_nanos - 1 WHERE id = $1', first),
      finds: ({ ids }) => [[SAME, ids[0]!], [HOUR]],
    },
    {
      what: 'an event that never reached billing',
      spoil: async ({ tenantId, ids }) => {
        newEvent.set(tenantId, newId('req'));
        await books.spoil(
          `INSERT INTO metering.usage_event
           SELECT started_at, ended_at, rated_at, cost_nanos, overrun_nanos, rated_nanos, input_femtos,
                  cached_input_femtos, output_femtos, request_nanos, prompt_tokens, cached_tokens, completion_tokens,
                  kind, outcome, stream, estimated, $2, tenant_id, key_id, model, price_version
           FROM metering.usage_event WHERE id = $1`,
          [ids[0], newEvent.get(tenantId)],
        );
      },
      finds: ({ tenantId }) => [[CHARGED, newEvent.get(tenantId)!], [HOUR]],
    },
    {
      what: 'a usage event of 2⁶³−1 nanos, which is not the cost of its tokens',
      spoil: async ({ tenantId, keyId }) => {
        const event = { ...usageEvent(tenantId, keyId, 5), costNanos: String(2n ** 63n - 1n) };
        newEvent.set(tenantId, event.id);
        await books.publishRefused(event);
      },
      finds: ({ tenantId }) => [['no usage event is quarantined', newEvent.get(tenantId)!]],
    },
    {
      what: 'a wrong roll-up',
      spoil: sql(
        'UPDATE metering.usage_hour SET completion_tokens = completion_tokens + 1 WHERE tenant_id = $1',
        tenant,
      ),
      finds: () => [[HOUR]],
    },
    {
      what: 'a missing roll-up',
      spoil: sql('DELETE FROM metering.usage_hour WHERE tenant_id = $1', tenant),
      finds: () => [[HOUR], ['the roll-up of a tenant is the sum of its events']],
    },
    {
      what: 'a wrong sum of a tenant',
      spoil: sql('UPDATE metering.tenant_sum SET cost_nanos = cost_nanos + 1 WHERE tenant_id = $1', tenant),
      finds: () => [['the roll-up of a tenant is the sum of its events']],
    },
    {
      what: 'a balance in the admission store that differs by one nano',
      spoil: ({ tenantId }) => spoilers.balance(tenantId, -1n),
      finds: () => [['balance = balance of the admission store']],
    },
    {
      what: 'a tenant that the admission store lost',
      spoil: ({ tenantId }) => spoilers.forget(tenantId),
      // A store that asks the books at the next request has lost nothing.
      finds: () => (books.admission.asksForTenants ? [] : [[UNKNOWN]]),
    },
    {
      what: 'a tenant of which the admission store has only a hold',
      spoil: async ({ tenantId, ids }) => {
        await spoilers.pending(tenantId, `${ids[0]!}x`);
        await spoilers.forget(tenantId);
      },
      finds: ({ ids }) => [
        [UNKNOWN, `${ids[0]!}x`],
        ['every pending hold is renewed or expires', `${ids[0]!}x`],
      ],
    },
    {
      what: 'a stray pending hold',
      spoil: ({ tenantId, ids }) => spoilers.pending(tenantId, `${ids[0]!}x`),
      finds: ({ ids }) => [
        ['pending sum = sum of pending holds', `${ids[0]!}x`],
        ['every pending hold is renewed or expires', `${ids[0]!}x`],
      ],
    },
    {
      what: 'a settled hold whose usage never reached the books',
      spoil: async ({ tenantId, keyId }) => {
        const event = usageEvent(tenantId, keyId, 5, Date.now() - 3_600_000);
        newEvent.set(tenantId, event.id);
        await spoilers.settled(event);
      },
      finds: ({ tenantId }) => [
        ['settled sum = sum of settled holds', newEvent.get(tenantId)!],
        ['every settled hold reaches the books', newEvent.get(tenantId)!],
      ],
    },
    {
      what: 'a settled hold that was never released',
      spoil: async ({ tenantId, keyId, ids }) => {
        await spoilers.settled({ ...usageEvent(tenantId, keyId, 5), id: ids[0]! });
        await books.spoil(`UPDATE billing.charge SET gathered_at = gathered_at - interval '1 hour' WHERE id = $1`, [
          ids[0],
        ]);
      },
      finds: ({ ids }) => [['every hold is released once its charge is gathered', ids[0]!]],
    },
  ];
}
