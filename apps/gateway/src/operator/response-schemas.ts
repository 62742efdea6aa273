import { Type, type TSchema } from '@sinclair/typebox';
import { nextCursor, orNull, timestamp } from '../http/account/fields';
import { Invoice, Key, LedgerEntry, Token, UsageAnswer } from '../http/account/schemas';
import { OPERATOR_ERRORS } from './errors';
import { CENTS, JournalHead, nanos, NAMED_ID, PERIOD } from './schemas';

/** What the operator API answers: for its OpenAPI document, which a test holds against real answers. */

const exact = { additionalProperties: false };
const currency = Type.String({
  pattern: '^[A-Z]{3}$',
  description: 'The currency of all amounts, from tollgate.yaml.',
});
const page = <T extends TSchema>(rows: T, $id: string) =>
  Type.Object({ data: Type.Array(rows), nextCursor }, { ...exact, $id });
export const answer = <T extends TSchema>(data: T, $id: string) => Type.Object({ data }, { ...exact, $id });
const count = (description: string) => Type.Integer({ minimum: 0, description });

export const Tenant = Type.Object(
  {
    id: NAMED_ID.tenant,
    name: Type.String(),
    plan: Type.String({ description: 'A plan of tollgate.yaml.' }),
    status: Type.Union([Type.Literal('active'), Type.Literal('suspended')]),
    createdAt: timestamp('When it was made.'),
  },
  { ...exact, $id: 'Tenant' },
);
export const TenantAnswer = answer(Tenant, 'TenantAnswer');
export const TenantList = page(Tenant, 'TenantList');

export const OperatorLedgerEntry = Type.Object(
  {
    ...LedgerEntry.properties,
    reason: Type.Optional(Type.String({ description: 'The reason that was given for a manual entry.' })),
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
          'The credit for new requests: the balance less unposted usage and holds. null: the admission store does not answer, or does not know the tenant.',
        ),
        carriedNanos: nanos('Used and not yet a whole cent on the ledger.'),
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
    { entry: OperatorLedgerEntry, balanceCents: Type.Integer({ description: 'After this entry.' }), currency },
    exact,
  ),
  'EnteredAnswer',
);

export const Budget = Type.Object(
  {
    keyId: orNull(NAMED_ID.key, "null: the tenant's own, over all its keys."),
    monthlyBudgetCents: orNull(CENTS, 'In force now; null: none.'),
    setBy: Type.Union([Type.Literal('operator'), Type.Literal('configuration')]),
    thresholdsPercent: Type.Array(Type.Integer({ minimum: 1, maximum: 100 })),
    thresholdsSetBy: Type.Union([Type.Literal('operator'), Type.Literal('configuration')]),
    period: PERIOD,
    spentNanos: nanos('By requests that ended in the month and have reached the books.'),
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

const once = Type.String({ description: 'A reminder that it is not shown again.' });
export const OperatorKeyCreated = Type.Object(
  {
    data: Type.Object(
      { ...Key.properties, key: Type.String({ pattern: '^sk-svc-', description: 'Shown here, once.' }) },
      exact,
    ),
    note: once,
  },
  { ...exact, $id: 'OperatorKeyCreated' },
);
export const OperatorTokenCreated = Type.Object(
  {
    data: Type.Object(
      { ...Token.properties, token: Type.String({ pattern: '^fma_', description: 'Shown here, once.' }) },
      exact,
    ),
    note: once,
  },
  { ...exact, $id: 'OperatorTokenCreated' },
);

export const OperatorUsageAnswer = answer(
  Type.Object({ ...UsageAnswer.properties.data.properties, currency }, exact),
  'OperatorUsageAnswer',
);

const charged = {
  id: NAMED_ID.request,
  keyId: NAMED_ID.key,
  costNanos: nanos('What it costs.'),
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
    overrunNanos: nanos("Delivered beyond the hold: the operator's loss."),
    priceVersion: Type.String(),
    startedAt: timestamp('When it was admitted.'),
    promptTokens: count('Of the prompt.'),
    cachedTokens: count('Among them, from the cache.'),
    completionTokens: count('Of the answer.'),
  },
  { ...exact, $id: 'RecordedRequest' },
);
const eventOrNull = orNull(RecordedRequest, 'As metering has recorded it; null: not yet.');
export const EntryRequests = Type.Object(
  {
    data: Type.Array(Type.Object({ ...charged, event: eventOrNull }, exact)),
    entry: Type.Object({ ...OperatorLedgerEntry.properties, tenantId: NAMED_ID.tenant, period: PERIOD }, exact),
    carriedInNanos: nanos('The remainder below a cent carried in from the entry before.'),
    carriedOutNanos: nanos(
      'The remainder carried out to the next entry: the costs + carried in = amount + carried out.',
    ),
    currency,
    nextCursor,
  },
  { ...exact, $id: 'EntryRequests' },
);
export const RequestTrail = answer(
  Type.Object(
    {
      event: eventOrNull,
      charge: orNull(
        Type.Object({ ...charged, tenantId: NAMED_ID.tenant, period: PERIOD }, exact),
        'As recorded by billing; null: not yet recorded.',
      ),
      carriedOn: Type.Boolean({
        description: 'Together with others it was less than a cent: an entry of a later month includes it.',
      }),
      entry: orNull(OperatorLedgerEntry, 'null: not posted yet, or carried on.'),
      invoice: orNull(
        Type.Object(
          {
            period: PERIOD,
            accountingNumber: Type.Integer(),
            status: Type.Union([Type.Literal('paid'), Type.Literal('void')]),
          },
          exact,
        ),
        'The invoice of its month; null while the month is open.',
      ),
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
    voidedAt: orNull(timestamp('When it was made void.'), 'null: it is not.'),
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
      invoices: count('Issued.'),
      empty: count('Months closed without one, as nothing was debited.'),
      waiting: count('Months that stay open until the credit pays for their usage, or as their books refuse.'),
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
    { differences: Differences('The heads that are not in the journal any more; none: it is what it was.') },
    exact,
  ),
  'JournalCompared',
);

export const ReconcileReport = Type.Object(
  {
    ok: Type.Boolean(),
    checkedAt: timestamp('When it began.'),
    tenants: count('Compared.'),
    events: count('Compared.'),
    eventsNanos: nanos('Sum of the usage events.'),
    chargesNanos: nanos('Sum of the charges.'),
    debitsNanos: nanos('Sum of the ledger debits.'),
    carriedNanos: nanos('Not yet a cent.'),
    pendingHolds: count('Requests that run.'),
    settledHolds: count('On their way into the books.'),
    journalEntries: count('Of all tenants.'),
    journalDigest: Type.String({
      description: 'A hash over the newest entry of each tenant, and so over the whole journal.',
    }),
    differenceCount: count('Named by the checks, each of which names the first 100 of a part of the books.'),
    truncated: Type.Optional(
      Type.Literal(true, { description: 'The report does not name all differences, and may not count all of them.' }),
    ),
    differences: Differences('The first 1,000 that were named.'),
    currency,
  },
  { ...exact, $id: 'ReconcileReport' },
);
const run = { id: Type.String(), startedAt: timestamp('When it began.') };
export const ReconcileRunning = Type.Object(
  {
    ...run,
    state: Type.Literal('running'),
    events: count('So far.'),
    tenants: count('So far.'),
    differenceCount: count('So far.'),
  },
  { ...exact, $id: 'ReconcileRunning' },
);
export const ReconcileReportAnswer = answer(ReconcileReport, 'ReconcileReportAnswer');
export const ReconcileRunningAnswer = answer(ReconcileRunning, 'ReconcileRunningAnswer');
export const ReconcileRunAnswer = answer(
  Type.Union([ReconcileRunning, Type.Object({ ...run, state: Type.Literal('done'), report: ReconcileReport }, exact)]),
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
