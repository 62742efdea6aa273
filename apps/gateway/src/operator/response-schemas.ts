import { Type, type TSchema } from '@sinclair/typebox';
import { nextCursor, orNull, timestamp } from '../http/account/fields';
import { Invoice, LedgerEntry, Token } from '../http/account/schemas';
import { OPERATOR_ERRORS } from './errors';
import { CENTS, JournalHead, nanos, NAMED_ID, PERIOD } from './schemas';

/** The answers of the operator API, for its OpenAPI document. A test compares the document with real answers. */

const exact = { additionalProperties: false };
export const currency = Type.String({
  pattern: '^[A-Z]{3}$',
  description: 'The currency of all amounts, from tollgate.yaml.',
});
export const page = <T extends TSchema>(rows: T, $id: string) =>
  Type.Object({ data: Type.Array(rows), nextCursor }, { ...exact, $id });
export const answer = <T extends TSchema>(data: T, $id: string) => Type.Object({ data }, { ...exact, $id });
const count = (description: string) => Type.Integer({ minimum: 0, description });

export const OperatorLedgerEntry = Type.Object(
  {
    ...LedgerEntry.properties,
    reason: Type.Optional(Type.String({ description: 'The reason given for a manual entry.' })),
  },
  { ...exact, $id: 'OperatorLedgerEntry' },
);
export const CreditAnswer = Type.Object(
  {
    data: Type.Object(
      {
        balanceCents: Type.Integer({ description: 'The sum of all entries.' }),
        spendableCents: orNull(
          Type.Integer(),
          'The credit for new requests: the balance less unposted usage and holds. ' +
            'null: the admission store does not answer, or does not know the tenant.',
        ),
        carriedNanos: nanos('Usage that is not yet posted to the ledger.'),
        entries: Type.Array(OperatorLedgerEntry, { description: 'Newest first.' }),
        invoices: Type.Array(Invoice),
        currency,
      },
      exact,
    ),
    nextCursor,
  },
  { ...exact, $id: 'CreditAnswer' },
);
export const EnteredAnswer = answer(
  Type.Object(
    {
      entry: OperatorLedgerEntry,
      balanceCents: Type.Integer({ description: 'After this entry.' }),
      created: Type.Boolean({ description: 'false: this `ref` was booked before, and nothing was booked now.' }),
      currency,
    },
    exact,
  ),
  'EnteredAnswer',
);

export const Budget = Type.Object(
  {
    keyId: orNull(NAMED_ID.key, 'null: the budget of the tenant, for all its keys.'),
    monthlyBudgetCents: orNull(CENTS, 'The budget in force. null: none.'),
    setBy: Type.Union([Type.Literal('operator'), Type.Literal('configuration')]),
    thresholdsPercent: Type.Array(Type.Integer({ minimum: 1, maximum: 100 })),
    thresholdsSetBy: Type.Union([Type.Literal('operator'), Type.Literal('configuration')]),
    period: PERIOD,
    spentNanos: nanos('Spent by requests that ended in the month and have reached the books.'),
    events: Type.Array(
      Type.Object(
        { thresholdPercent: Type.Integer(), budgetCents: CENTS, at: timestamp('When it was recorded.') },
        exact,
      ),
      { description: 'Thresholds reached in the month, oldest first.' },
    ),
    currency,
  },
  { ...exact, $id: 'Budget' },
);
export const BudgetAnswer = answer(Budget, 'BudgetAnswer');
export const BudgetList = page(Budget, 'BudgetList');

export const once = Type.String({ description: 'A reminder that the value is not shown again.' });
export const OperatorTokenCreated = Type.Object(
  {
    data: Type.Object(
      { ...Token.properties, token: Type.String({ pattern: '^fma_', description: 'Shown only in this answer.' }) },
      exact,
    ),
    note: once,
  },
  { ...exact, $id: 'OperatorTokenCreated' },
);

const charged = {
  id: NAMED_ID.request,
  keyId: NAMED_ID.key,
  costNanos: nanos('Cost.'),
  endedAt: timestamp('When it ended.'),
};
export const RecordedRequest = Type.Object(
  {
    ...charged,
    tenantId: NAMED_ID.tenant,
    model: Type.String(),
    kind: Type.Union(['chat', 'completion', 'embedding'].map((kind) => Type.Literal(kind))),
    stream: Type.Boolean(),
    outcome: Type.Union(
      ['complete', 'client_closed', 'upstream_error', 'credit_ended', 'expired'].map((outcome) =>
        Type.Literal(outcome),
      ),
    ),
    estimated: Type.Boolean({ description: 'The gateway counted or estimated the tokens.' }),
    overrunNanos: nanos("Cost beyond the hold: the operator's loss."),
    priceVersion: Type.String(),
    startedAt: timestamp('When it was admitted.'),
    promptTokens: count('Tokens of the prompt.'),
    cachedTokens: count('Tokens of the prompt that came from the cache.'),
    completionTokens: count('Tokens of the answer.'),
    reasoningTokens: count('Those of them that are reasoning, as the backend reports it.'),
  },
  { ...exact, $id: 'RecordedRequest' },
);
const eventOrNull = orNull(RecordedRequest, 'As recorded by metering. null: not yet recorded.');
export const EntryRequests = Type.Object(
  {
    data: Type.Array(Type.Object({ ...charged, event: eventOrNull }, exact)),
    entry: Type.Object(
      {
        ...OperatorLedgerEntry.properties,
        tenantId: NAMED_ID.tenant,
        period: PERIOD,
        balanceAfterCents: Type.Integer({ description: 'The balance after this entry.' }),
      },
      exact,
    ),
    carriedInNanos: nanos('The remainder below a cent carried in from the previous entry.'),
    carriedOutNanos: nanos('The remainder carried out to the next entry: costs + carried in = amount + carried out.'),
    currency,
    nextCursor,
  },
  { ...exact, $id: 'EntryRequests' },
);
export const NamedRequests = Type.Object({ data: Type.Array(RecordedRequest) }, { ...exact, $id: 'NamedRequests' });
export const RequestTrail = answer(
  Type.Object(
    {
      event: eventOrNull,
      charge: orNull(
        Type.Object({ ...charged, tenantId: NAMED_ID.tenant, period: PERIOD }, exact),
        'As recorded by billing. null: not yet recorded.',
      ),
      carriedOn: Type.Boolean({
        description: 'The charge was below a cent, alone or with others. An entry of a later month includes it.',
      }),
      entry: orNull(OperatorLedgerEntry, 'null: not posted yet, or carried on to a later month.'),
      invoice: orNull(
        Type.Object(
          {
            period: PERIOD,
            accountingNumber: Type.Integer(),
            status: Type.Union([Type.Literal('paid'), Type.Literal('void')]),
          },
          exact,
        ),
        'The invoice of the month. null while the month is open, and if nothing was debited in it.',
      ),
      monthClosed: Type.Boolean({ description: 'Whether the month in which the charge is billed is closed.' }),
      currency,
    },
    exact,
  ),
  'RequestTrail',
);

export const IssuedInvoice = Type.Object(
  {
    ...Invoice.properties,
    tenantId: NAMED_ID.tenant,
    status: Type.Union([Type.Literal('paid'), Type.Literal('void')]),
    accountingNumber: Type.Integer({ description: 'Numbered without gaps.' }),
    voidedAt: orNull(timestamp('When it was voided.'), 'null: not voided.'),
  },
  { ...exact, $id: 'IssuedInvoice' },
);
export const InvoiceList = Type.Object(
  { data: Type.Array(IssuedInvoice), currency, nextCursor },
  { ...exact, $id: 'InvoiceList' },
);
export const MonthClosed = answer(
  Type.Object(
    {
      invoices: count('Invoices issued.'),
      empty: count('Months closed without an invoice, because nothing was debited.'),
      waiting: count('Months that stay open, because the credit does not cover their usage or the books refuse.'),
    },
    exact,
  ),
  'MonthClosed',
);
export const InvoiceVoided = answer(
  Type.Object({ invoice: IssuedInvoice, entry: OperatorLedgerEntry, balanceCents: Type.Integer(), currency }, exact),
  'InvoiceVoided',
);

const Differences = (description: string) =>
  Type.Array(
    Type.Object(
      {
        check: Type.String(),
        tenantId: Type.String(),
        expected: Type.String(),
        actual: Type.String(),
        ids: Type.Array(Type.String()),
      },
      exact,
    ),
    { description },
  );

export const JournalHeads = page(JournalHead, 'JournalHeads');
export const JournalCompared = answer(
  Type.Object(
    { differences: Differences('The heads that are no longer in the journal. Empty: the journal was not changed.') },
    exact,
  ),
  'JournalCompared',
);

export const ReconcileReport = Type.Object(
  {
    ok: Type.Boolean(),
    checkedAt: timestamp('Start of the run.'),
    tenants: count('Tenants compared.'),
    events: count('Usage events compared.'),
    eventsNanos: nanos('Sum of the usage events.'),
    chargesNanos: nanos('Sum of the charges.'),
    debitsNanos: nanos('Sum of the ledger debits.'),
    carriedNanos: nanos('The remainders below a cent, not yet debited.'),
    pendingHolds: count('Holds of running requests.'),
    settledHolds: count('Holds whose usage is not in the books yet.'),
    journalEntries: count('Journal entries of all tenants.'),
    journalDigest: Type.String({
      description: 'A hash over the newest entries of all tenants, and so over the whole journal.',
    }),
    differenceCount: count('Differences found. Each check stops at 100 for each part of the books.'),
    truncated: Type.Optional(
      Type.Literal(true, { description: 'The report does not list all differences, and may not count all of them.' }),
    ),
    differences: Differences('The first 1,000 differences.'),
    currency,
  },
  { ...exact, $id: 'ReconcileReport' },
);
const run = { id: Type.String(), startedAt: timestamp('Start of the run.') };
export const ReconcileRunning = Type.Object(
  {
    ...run,
    state: Type.Literal('running'),
    events: count('Usage events compared so far.'),
    tenants: count('Tenants compared so far.'),
    differenceCount: count('Differences found so far.'),
  },
  { ...exact, $id: 'ReconcileRunning' },
);
export const ReconcileReportAnswer = answer(ReconcileReport, 'ReconcileReportAnswer');
export const ReconcileRunningAnswer = answer(ReconcileRunning, 'ReconcileRunningAnswer');
export const ReconcileRunAnswer = answer(
  Type.Union([
    ReconcileRunning,
    Type.Object({ ...run, state: Type.Literal('done'), report: ReconcileReport }, exact),
    Type.Object(
      { ...run, state: Type.Literal('failed'), reason: Type.String({ description: 'Why it has no report.' }) },
      exact,
    ),
  ]),
  'ReconcileRunAnswer',
);

export const OperatorError = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.Unsafe<string>({ type: 'string', enum: Object.keys(OPERATOR_ERRORS), description: 'Stable.' }),
        message: Type.String(),
      },
      exact,
    ),
  },
  { ...exact, $id: 'OperatorError' },
);
