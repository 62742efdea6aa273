import type { Books, Served } from './books';
import type { Corruption } from './cases';

/** Every known corruption of months and invoices. */
export function monthCorruptions(books: Books): Corruption[] {
  const spoil = (text: string) => (of: Served) => books.spoil(text, [of.tenantId]);
  return [
    {
      what: 'a missing month',
      spoil: spoil('DELETE FROM billing.tenant_month WHERE tenant_id = $1'),
      finds: () => [['every charge is in a month of its tenant']],
      only: true,
    },
    {
      what: 'a missing invoice',
      closed: true,
      spoil: spoil('DELETE FROM billing.invoice WHERE tenant_id = $1'),
      finds: ({ invoice }) => [
        ['every closed month that was debited has its invoice'],
        ['invoices are numbered without a gap', invoice],
      ],
    },
    {
      what: 'an invoice with another amount',
      closed: true,
      spoil: spoil('UPDATE billing.invoice SET amount_cents = amount_cents + 1 WHERE tenant_id = $1'),
      finds: ({ invoice }) => [['every invoice is the sum of the usage entries of its month', invoice]],
    },
    {
      what: 'a closed month that is open again',
      closed: true,
      spoil: spoil('UPDATE billing.tenant_month SET closed_at = NULL WHERE tenant_id = $1'),
      finds: ({ invoice }) => [['the month of every invoice is closed', invoice]],
      only: true,
    },
    {
      what: 'an invoice that is void without its reversing entry',
      closed: true,
      spoil: async ({ tenantId, invoice }) =>
        books.spoil('INSERT INTO billing.invoice_void (accounting_number, entry_id) VALUES ($1, $2)', [
          invoice,
          await books.entryId(tenantId, 1),
        ]),
      finds: ({ invoice }) => [['every void invoice has the entry that reverses it', invoice]],
      only: true,
    },
  ];
}
