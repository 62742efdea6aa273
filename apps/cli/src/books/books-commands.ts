import {
  formatCents,
  type ChargedRequest,
  type Invoice,
  type IssuedInvoice,
  type LedgerEntry,
  type RecordedEvent,
  type ReplyOf,
  type UsageGroupRow,
  type UsageNumbers,
  type UsageSummary,
} from '@tollgate/contracts';
import { entryOf, invoiceOf } from './books-words';
import { confirm } from '../command/agrees';
import type { Context } from '../command/context';
import { Failure } from '../command/failure';
import { formatNanos } from '../command/money';
import { MAX_LIST_ROWS, tenantPath } from '../command/operator-client';
import { counted, printable, table } from '../command/table';

const CLOSE_TIMEOUT_MS = 90_000;
const PAGE_ROWS = 200;

interface EntryPage {
  data: (ChargedRequest & { event: RecordedEvent | null })[];
  entry: LedgerEntry & { tenantId: string; period: string };
  carriedInNanos: string;
  carriedOutNanos: string;
  currency: string;
  nextCursor: string | null;
}

type RequestBooks = Omit<ReplyOf<'billing.request.entry'>, 'charge'> & {
  charge: ReplyOf<'billing.request.entry'>['charge'] | null;
  event: RecordedEvent | null;
  currency: string;
};

/** The requests that a ledger entry debits, all its pages (at most MAX_LIST_ROWS requests). */
export async function usageOfEntry({ client, output }: Context, entryId: string): Promise<void> {
  const requests: EntryPage['data'] = [];
  const path = `/entries/${encodeURIComponent(entryId)}/requests?limit=${PAGE_ROWS}`;
  let page: EntryPage;
  do {
    const after = requests.at(-1)?.id;
    page = await client.get<EntryPage>(after === undefined ? path : `${path}&after=${after}`);
    requests.push(...page.data);
  } while (page.nextCursor !== null && requests.length < MAX_LIST_ROWS);
  const { entry, carriedInNanos, carriedOutNanos, currency } = page;
  const cells = requests.map(({ id, keyId, endedAt, costNanos, event }) => [
    id,
    event?.model ?? '?',
    keyId,
    event ? String(event.promptTokens) : '?',
    event ? `${event.completionTokens}${event.estimated ? ' (estimated)' : ''}` : '?',
    formatNanos(costNanos, currency),
    endedAt,
  ]);
  const text = [
    `${entry.id}: ${entry.type}, ${formatCents(entry.amountCents, currency)}, ${entry.source} ` +
      `${printable(entry.ref)}, tenant ${entry.tenantId}, month ${entry.period}.`,
    `Carried in: ${formatNanos(carriedInNanos, currency)}; carried on: ${formatNanos(carriedOutNanos, currency)}.`,
    '',
    table(['REQUEST', 'MODEL', 'KEY', 'PROMPT', 'COMPLETION', 'COST', 'ENDED'], cells, 'It covers no requests.'),
  ];
  output.answer({ entry, carriedInNanos, carriedOutNanos, currency, requests }, text.join('\n'));
  if (page.nextCursor !== null) output.note(`Only the first ${MAX_LIST_ROWS} are listed.`);
}

/** Ids of ours: of a request, and of its answer. */
const OWN_ID = /^(req_|chatcmpl-|cmpl-)/;

/** From a request to its ledger entry and invoice: by our id, or by the one that its caller chose. */
export async function usageOfRequest(context: Context, id: string): Promise<void> {
  if (OWN_ID.test(id)) return trailOf(context, id);
  const { client, output } = context;
  const path = `/requests?callerRequestId=${encodeURIComponent(id)}`;
  const { data } = await client.get<{ data: RecordedEvent[] }>(path);
  if (data.length === 0)
    throw new Failure(`No usage is recorded for a request with the x-request-id '${id}'.`, 'not_found');
  if (data.length === 1) return trailOf(context, data[0]!.id);
  const cells = data.map((event) => [
    event.id,
    event.tenantId,
    event.keyId,
    event.model,
    `${event.promptTokens} + ${event.completionTokens}`,
    event.outcome,
    event.endedAt,
  ]);
  output.answer(data, table(['REQUEST', 'TENANT', 'KEY', 'MODEL', 'TOKENS', 'OUTCOME', 'ENDED'], cells, ''));
}

async function trailOf({ client, output }: Context, requestId: string): Promise<void> {
  const { data } = await client.get<{ data: RequestBooks }>(`/requests/${encodeURIComponent(requestId)}`);
  const { event, charge, currency } = data;
  const lines = [
    `Request:  ${requestId}`,
    event
      ? `Event:    ${event.model}, ${event.promptTokens} + ${event.completionTokens} ` +
        `tokens${event.estimated ? ' (estimated)' : ''}, ${event.outcome}, key ${event.keyId}, tenant ` +
        `${event.tenantId}, ${event.endedAt}`
      : 'Event:    not recorded, or no longer kept',
    charge
      ? `Charge:   ${formatNanos(charge.costNanos, currency)}, billed in ${charge.period}`
      : 'Charge:   not gathered yet',
    `Entry:    ${charge ? entryOf(data, currency) : '-'}`,
    `Invoice:  ${invoiceOf(data)}`,
  ];
  output.answer(data, lines.join('\n'));
}

/** The operator API also groups by what keys are called. */
type NamedUsage = Omit<UsageSummary, 'groups'> & {
  currency: string;
  groups: (UsageGroupRow & { owner?: string | null; tag?: string | null })[];
  /** Null: not counted for one model. */
  refusals: { code: string; requests: number }[] | null;
};

export async function usageOfTenant(
  { client, output }: Context,
  tenant: string,
  options: { from?: string; to?: string; groupBy?: string; model?: string; key?: string },
): Promise<void> {
  const { from: since, to: until, groupBy, model, key } = options;
  const named = { from: since, to: until, groupBy, model, keyId: key };
  const query = new URLSearchParams(
    Object.entries(named).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const { data } = await client.get<{ data: NamedUsage }>(tenantPath(tenant, `/usage?${query.toString()}`));
  const { from, to, totals, groups, refusals, currency } = data;
  const numbers = ({ requests, failed, clientClosed, estimatedRequests = 0, ...tokens }: UsageNumbers) => [
    ...[requests, failed, clientClosed, estimatedRequests].map(String),
    ...[tokens.promptTokens, tokens.cachedTokens, tokens.completionTokens, tokens.reasoningTokens].map(String),
    formatNanos(tokens.costNanos, currency),
  ];
  const rows = groups.map((row) => [
    [row.day, row.hour, row.model, row.backend, row.owner, row.tag, row.key]
      .filter((part) => part !== undefined)
      .map((part) => (part === null ? '-' : printable(part)))
      .join(' '),
    ...numbers(row),
  ]);
  rows.push(['all', ...numbers(totals)]);
  const head = ['REQUESTS', 'FAILED', 'LEFT', 'ESTIMATED', 'PROMPT', 'CACHED', 'COMPLETION', 'REASONING', 'COST'];
  const refused = (refusals ?? []).map(({ code, requests }) => [code, String(requests)]);
  const unbilled =
    refused.length === 0 ? '' : `\n\nWithout usage, and free of charge:\n${table(['ERROR', 'REQUESTS'], refused, '')}`;
  output.answer(data, `${from} to ${to}\n\n${table(['', ...head], rows, '')}${unbilled}`);
  const filter = [model !== undefined && '--model', key !== undefined && '--key'].filter(Boolean).join(' and ');
  if (totals.requests === 0 && filter !== '') output.note(`No usage in this range matches ${filter}.`);
  if (refusals === null) output.note('Requests that got an error and have no usage are not counted by model.');
  if (groupBy?.split(',').includes('tag')) output.note('A key with several tags is in the line of each.');
}

export async function listInvoices(
  { client, output }: Context,
  tenantId: string | undefined,
  period: string | undefined,
): Promise<void> {
  // Without a tenant only issued ones are listed: the open months of all tenants have no end.
  const invoices: (IssuedInvoice | OpenInvoice)[] =
    tenantId === undefined ? [] : await openMonths(client, tenantId, period);
  let after: string | null = null;
  let currency = '';
  do {
    const query: URLSearchParams = new URLSearchParams({ limit: String(PAGE_ROWS) });
    if (tenantId !== undefined) query.set('tenantId', tenantId);
    if (period !== undefined) query.set('period', period);
    if (after !== null) query.set('after', after);
    const page: { data: IssuedInvoice[]; currency: string; nextCursor: string | null } = await client.get(
      `/invoices?${query.toString()}`,
    );
    invoices.push(...page.data);
    ({ currency, nextCursor: after } = page);
  } while (after !== null && invoices.length < MAX_LIST_ROWS);
  const cells = invoices.map(({ accountingNumber, tenantId, period, amountCents, status, createdAt }) => [
    accountingNumber === null ? '-' : String(accountingNumber),
    tenantId,
    period,
    formatCents(amountCents, currency),
    status,
    status === 'open' ? '-' : createdAt,
  ]);
  output.answer(
    invoices,
    table(
      ['NUMBER', 'TENANT', 'MONTH', 'AMOUNT', 'STATUS', 'ISSUED'],
      cells,
      tenantId === undefined ? 'No invoices are issued yet.' : 'No invoices yet.',
    ),
  );
  if (tenantId === undefined)
    output.note('Months that are still open are not listed. Those of one tenant: tollgate invoice list <tenant>');
  if (after !== null) output.note(`Only the newest ${MAX_LIST_ROWS} are listed.`);
}

type OpenInvoice = Invoice & { tenantId: string; accountingNumber: null; voidedAt: null };

/** The months of a tenant that are not closed: the running one, and those that wait for credit. Newest first. */
async function openMonths(
  client: Context['client'],
  tenantId: string,
  period: string | undefined,
): Promise<OpenInvoice[]> {
  const path = tenantPath(tenantId, '/credit?limit=1');
  const { data } = await client.get<{ data: { invoices: Invoice[] } }>(path);
  const open = data.invoices.filter((one) => one.status === 'open' && (period === undefined || one.period === period));
  return open.map((one) => ({ ...one, tenantId, accountingNumber: null, voidedAt: null }));
}

export async function closeMonth({ client, output }: Context, period: string, tenantId?: string): Promise<void> {
  const { data } = await client.post<{ data: ReplyOf<'billing.invoices.close'> }>(
    '/invoices/close',
    { period, ...(tenantId !== undefined && { tenantId }) },
    CLOSE_TIMEOUT_MS,
  );
  const waiting =
    data.waiting > 0 ? ` Waiting for credit that pays for their usage: ${counted(data.waiting, 'month')}.` : '';
  output.answer(
    data,
    `${counted(data.invoices, 'invoice')} issued; ${counted(data.empty, 'month')} closed without one.${waiting}`,
  );
}

export async function voidInvoice(
  { client, output }: Context,
  number: string,
  { reason, yes = false }: { reason: string; yes?: boolean },
): Promise<void> {
  await confirm(() => `Void invoice ${printable(number)} for good?`, { yes });
  const { data } = await client.post<{ data: ReplyOf<'billing.invoices.void'> & { currency: string } }>(
    `/invoices/${encodeURIComponent(number)}/void`,
    { reason },
  );
  const { invoice, balanceCents, currency } = data;
  output.answer(
    data,
    `Invoice ${invoice.accountingNumber} is void: ${formatCents(invoice.amountCents, currency)} went back to ` +
      `${invoice.tenantId}. Balance: ${formatCents(balanceCents, currency)}.`,
  );
}
