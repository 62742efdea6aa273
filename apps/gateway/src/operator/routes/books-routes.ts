import { OperatorUsageQuery } from '../../http/account/schemas';
import { body } from '../../openapi/operation';
import type { RouteTable } from '../../openapi/route-table';
import type { OperatorEndpoint } from '../endpoint';
import { BackendHours, BackendHoursQuery } from '../backends/backend-schemas';
import * as answers from '../response-schemas';
import * as requests from '../schemas';
import { OperatorUsageAnswer } from '../usage/usage-schemas';
import { UsageCsv, UsageExportQuery, UsageNdjson } from '../usage/usage-export-schemas';

/** The routes of usage, invoices, and the proof of the books. */
export const BOOKS_ROUTES: RouteTable<OperatorEndpoint> = {
  '/usage/export': {
    get: {
      id: 'exportUsage',
      tag: 'Books',
      scope: 'read',
      summary: 'Export usage of all tenants as CSV, NDJSON or FOCUS',
      description:
        'All requests that ended in the range, or their sums by tenant, key, model and hour or day, with cost, ' +
        'tokens, errors, and the names, owner and tags of the key. A stream: an answer that breaks off is not ' +
        'complete. Usage may arrive some seconds after the end of a request.',
      query: UsageExportQuery,
      success: [['200', 'A line for each request or sum.', UsageCsv, UsageNdjson]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
  '/tenants/{tenantId}/usage': {
    get: {
      id: 'readUsage',
      tag: 'Books',
      scope: 'read',
      summary: 'Read usage',
      description:
        'The same requests as `GET /usage` of the tenant, also by backend, owner and tag of the key, with errors, ' +
        'cached and reasoning tokens, and the exact cost. Requests that got an error and have no usage are ' +
        'in `refusals`.',
      query: OperatorUsageQuery,
      success: [['200', 'Usage in total and by group.', OperatorUsageAnswer]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
  '/entries/{entryId}/requests': {
    get: {
      id: 'listEntryRequests',
      tag: 'Books',
      scope: 'read',
      summary: 'List the requests that a ledger entry debits',
      description:
        'The costs plus the remainder carried in equal the amount plus the remainder carried out, to the nano.',
      query: requests.RequestsQuery,
      success: [['200', 'A page of requests.', answers.EntryRequests]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
  '/requests': {
    get: {
      id: 'findRequests',
      tag: 'Books',
      scope: 'read',
      summary: "Find requests by their callers' own id",
      description:
        'The newest 100 requests with usage whose callers sent this `x-request-id`, newest first. Callers may use an ' +
        'id again.',
      query: requests.NamedRequestsQuery,
      success: [['200', 'The requests.', answers.NamedRequests]],
    },
  },
  '/requests/{requestId}': {
    get: {
      id: 'readRequest',
      tag: 'Books',
      scope: 'read',
      summary: 'Find the ledger entry and invoice of a request',
      description:
        'Accepts the id of the request (`req_…`) or of its answer (`chatcmpl-…`, `cmpl-…`). ' +
        'A part that does not exist yet is null.',
      success: [['200', 'Event, charge, entry, invoice.', answers.RequestTrail]],
      errors: ['not_found'],
    },
  },
  '/invoices': {
    get: {
      id: 'listInvoices',
      tag: 'Books',
      scope: 'read',
      summary: 'List issued invoices',
      description:
        'Highest number first. Open months have no number and are not listed, neither without nor with `tenantId`: ' +
        'those of a tenant are the `invoices` of `GET /_operator/v1/tenants/{tenantId}/credit`, with status `open`.',
      query: requests.InvoicesQuery,
      success: [['200', 'A page of invoices.', answers.InvoiceList]],
      errors: ['not_found', 'invalid_parameter'],
    },
  },
  '/invoices/close': {
    post: {
      id: 'closeMonth',
      tag: 'Books',
      scope: 'books',
      change: 'invoice.close',
      summary: 'Close a past month, and the months before it, now',
      description: 'A charge that arrives later is billed in the current month.',
      body: body(requests.InvoiceClose, { period: '2026-10' }),
      success: [['200', 'The numbers of months closed and not closed.', answers.MonthClosed]],
      errors: ['not_found', 'invalid_period'],
    },
  },
  '/invoices/{accountingNumber}/void': {
    post: {
      id: 'voidInvoice',
      tag: 'Books',
      scope: 'books',
      change: 'invoice.void',
      summary: 'Reverse an invoice',
      description:
        'The invoice keeps its number, and its amount returns to the credit. ' +
        'A repeat with the same reason has the same answer.',
      body: body(requests.InvoiceVoid, { reason: 'wrong price' }),
      success: [['200', 'The invoice and the entry that reverses it.', answers.InvoiceVoided]],
      errors: ['not_found', 'invalid_reason', 'ref_conflict'],
    },
  },
  '/reconcile': {
    post: {
      id: 'startReconcile',
      tag: 'Books',
      scope: 'books',
      change: 'reconcile.start',
      summary: 'Check the books against the stores',
      description:
        'Waits up to 10 s for the report. A longer run continues. If the run fails, the answer is 503 `unavailable` ' +
        'with the reason, and a repeat starts another run.',
      success: [
        ['200', 'The report, whether or not it found differences.', answers.ReconcileReportAnswer],
        ['202', 'The run continues. Read it by its id.', answers.ReconcileRunningAnswer],
      ],
      errors: ['reconcile_busy'],
    },
  },
  '/reconcile/backends': {
    get: {
      id: 'compareBackends',
      tag: 'Books',
      scope: 'read',
      summary: 'Compare the counters of the engines with the books',
      description: 'By engine and hour, for backends with a metrics page (`metrics` in tollgate.yaml).',
      query: BackendHoursQuery,
      success: [['200', 'A page of hours.', BackendHours]],
      errors: ['invalid_parameter'],
    },
  },
  '/reconcile/{id}': {
    get: {
      id: 'readReconcile',
      tag: 'Books',
      scope: 'read',
      summary: 'Read the progress or the result of a run',
      description:
        'Reports are kept for a day. A run that has `failed` stays so, with its `reason`: start another one.',
      success: [['200', 'The run, also a failed one.', answers.ReconcileRunAnswer]],
      errors: ['not_found'],
    },
  },
  '/journal/heads': {
    get: {
      id: 'listJournalHeads',
      tag: 'Books',
      scope: 'read',
      summary: "List the newest entry of each tenant's journal, with its hash",
      description:
        'Keep the heads elsewhere. A later comparison shows whether an earlier entry was changed. Ascending by tenant.',
      query: requests.JournalHeadsQuery,
      success: [['200', 'A page of heads.', answers.JournalHeads]],
      errors: ['invalid_parameter'],
    },
  },
  '/journal/compare': {
    post: {
      id: 'compareJournal',
      tag: 'Books',
      scope: 'read',
      summary: 'Compare the journal with heads that you kept',
      description: 'A run of reconcile checks that the hashes match the entries.',
      body: body(requests.JournalCompare, {
        heads: [{ tenantId: 'ten_01k9z6y2m4v8r3t5w7x9a1b2c3', sequence: 17, hash: '5e'.repeat(32) }],
      }),
      success: [['200', 'The heads that are no longer in the journal.', answers.JournalCompared]],
      errors: ['invalid_parameter'],
    },
  },
};
