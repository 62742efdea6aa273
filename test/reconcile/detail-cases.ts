import type { Books, Served } from './books';
import type { Corruption } from './cases';

const SAME = 'every charge is what its event says';
const SPENT = 'the spending of a month is the sum of its charges';

/** Every known corruption of what charges say beside their amount, of the spending that budgets watch, of a status. */
export function detailCorruptions(books: Books): Corruption[] {
  const ofFirst =
    (text: string) =>
    ({ ids }: Served) =>
      books.spoil(text, [ids[0]]);
  const ofTenant = (text: string) => (of: Served) => books.spoil(text, [of.tenantId]);
  return [
    {
      what: 'a charge of another key',
      spoil: ofFirst(`UPDATE billing.charge SET key_id = key_id || 'x' WHERE id = $1`),
      finds: ({ ids }) => [[SAME, ids[0]!], [SPENT]],
      only: true,
    },
    {
      what: 'a charge with another end',
      spoil: ofFirst(`UPDATE billing.charge SET ended_at = ended_at + interval '1 microsecond' WHERE id = $1`),
      finds: ({ ids }) => [[SAME, ids[0]!]],
      only: true,
    },
    {
      what: 'a charge with an overrun that its event does not have',
      spoil: ofFirst('UPDATE billing.charge SET overrun_nanos = 7 WHERE id = $1'),
      finds: ({ ids }) => [[SAME, ids[0]!], ['overruns of the charges = account overrun + not booked yet']],
      only: true,
    },
    {
      what: 'a suspension in the books that auth does not know',
      spoil: ofTenant('UPDATE billing.tenant_books SET suspended = true WHERE tenant_id = $1'),
      finds: () => [
        ['the books suspend those tenants that auth suspends'],
        ['a suspended tenant is suspended in the admission store'],
      ],
      only: true,
    },
    {
      what: 'an event of another key',
      spoil: ofFirst(`UPDATE metering.usage_event SET key_id = key_id || 'x' WHERE id = $1`),
      finds: ({ ids }) => [[SAME, ids[0]!]],
    },
    {
      what: 'another spending of a key',
      spoil: ofTenant(
        `UPDATE billing.budget_month SET spent_nanos = spent_nanos + 1 WHERE tenant_id = $1 AND key_id <> ''`,
      ),
      finds: () => [[SPENT]],
      only: true,
    },
    {
      what: 'the spending of a key and of its tenant moved to another month',
      spoil: ofTenant(`UPDATE billing.budget_month SET period = '2001-01' WHERE tenant_id = $1`),
      finds: () => [[SPENT]],
      only: true,
    },
    {
      what: 'a missing spending of a month',
      spoil: ofTenant('DELETE FROM billing.budget_month WHERE tenant_id = $1'),
      finds: () => [[SPENT]],
      only: true,
    },
  ];
}
