// Generates sound books of two months with generate_series: October is closed and invoiced, November is running. Every
// table that reconcile reads has rows: events, roll-ups, charges (some with an overrun), coverages that carry their
// remainders on, entries and postings, the budgets' months, invoices, and an admission store with settled holds that
// the ledger has not confirmed yet.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { idBound } = require('@tollgate/contracts');

const SLICES = 20;
const CHARGES_PER_ENTRY = 100;
/** The newest charges of each tenant. They are not covered yet. */
const GATHERING = 3;
const SETTLED_HOLDS_PER_TENANT = 5;
const SETTLED_NANOS = 1_000_000;
const TOPUP_CENTS = 1_000_000;
const NANOS_PER_CENT = 10_000_000;
const ID_CHARS = 30;
const DAY_MS = 86_400_000;

const MONTHS = [
  { period: '2026-10', startMs: Date.UTC(2026, 9, 1), endMs: Date.UTC(2026, 10, 1) },
  { period: '2026-11', startMs: Date.UTC(2026, 10, 1), endMs: Date.UTC(2026, 11, 1) },
].map((month) => ({ ...month, prefix: idBound('req', month.startMs + 1_000).slice(0, 14) }));

const tenant = (n) => `'ten_' || lpad(to_hex(${n}), 26, '0')`;
/** The same id as `tenant` gives in SQL. */
export const tenantId = (n) => `ten_${n.toString(16).padStart(26, '0')}`;
/**
 * The id of a month's event: the month's first instant, then the event's number in hex. Ids ascend with the numbers.
 */
export const requestId = (month, n) => MONTHS[month].prefix + n.toString(16).padStart(ID_CHARS - 14, '0');

/**
 * Events `from` to `to` − 1 of one month, each with its charge. `i` is the event's number in its month, from 0. Its
 * tenant is i % tenants, and seq counts from 1.
 */
function slice({ period, startMs, prefix }, { from, to, perMonth, tenants }) {
  const id = `'${prefix}' || lpad(to_hex(i), ${ID_CHARS - 14}, '0')`;
  const stepUs = Math.floor((20 * DAY_MS * 1_000) / perMonth);
  const rows = `
    (SELECT i, ${id} AS id, ${tenant(`i % ${tenants}`)} AS tenant_id, 'key_' || (i / ${tenants} % 2) AS key_id,
       to_timestamp(${startMs / 1000}) + i * ${stepUs} * interval '1 microsecond' AS ended,
       ((i + i / ${tenants}) * 7919 % 1000 + 1) * 1000 AS cost,
       CASE WHEN i % 997 = 0 THEN 4000000 ELSE 0 END AS overrun
     FROM generate_series(${from}::bigint, ${to - 1}) i) e`;
  return [
    `INSERT INTO metering.usage_event
     SELECT ended, ended, ended, cost, overrun, NULL, 0, 0, 1000000, 0, 10, 0, 20, 'chat', 'complete', false, false, id,
       tenant_id, key_id, 'sim-small', 'v'
     FROM ${rows}`,
    `INSERT INTO billing.charge
     SELECT id, tenant_id, key_id, cost, ended, '${period}', i / ${tenants} + 1, ended, overrun
     FROM ${rows}`,
  ];
}

const NO_HASH = `decode(repeat('00', 32), 'hex')`;
const [CLOSED, RUNNING] = MONTHS.map((month) => month.period);

/** As the trigger of journal_chain.sql makes it, which is off while the books are filled. */
const CHAIN = `
  DO $$
  DECLARE
    entry billing.journal_entry;
    link bytea;
  BEGIN
    FOR entry IN SELECT * FROM billing.journal_entry ORDER BY tenant_id, sequence LOOP
      link := CASE WHEN entry.sequence > 1 THEN link END;
      link := sha256(convert_to(billing.entry_text(entry, link), 'UTF8'));
      INSERT INTO billing.journal_chain (tenant_id, sequence, format, hash)
        VALUES (entry.tenant_id, entry.sequence, 1, link);
    END LOOP;
  END $$`;

/** Everything that is derived from events and charges. `last` is the number of charges per tenant and month. */
const following = (last) => [
  `INSERT INTO metering.usage_hour
   SELECT tenant_id, date_trunc('hour', ended_at, 'UTC'), model, key_id, count(*), sum(prompt_tokens),
     sum(cached_tokens), sum(completion_tokens), 0, sum(cost_nanos)
   FROM metering.usage_event GROUP BY 1, 2, 3, 4`,
  `INSERT INTO metering.tenant_sum
   SELECT tenant_id, sum(requests), sum(cost_nanos)
   FROM metering.usage_hour
   GROUP BY 1`,
  `CREATE TABLE public.tenant AS
   SELECT tenant_id, row_number() OVER (ORDER BY tenant_id) AS n
   FROM metering.tenant_sum`,
  // Charges in ranges. Each is covered at once, except the newest of the running month.
  `CREATE TABLE public.cover AS SELECT *, row_number() OVER w AS number, sum(nanos) OVER w AS total
   FROM (SELECT tenant_id, period, min(seq) AS from_seq, max(seq) AS to_seq, sum(cost_nanos) AS nanos
     FROM billing.charge
     WHERE period = '${CLOSED}' OR seq <= ${last - GATHERING}
     GROUP BY tenant_id, period, (seq - 1) / ${CHARGES_PER_ENTRY}) c
   WINDOW w AS (PARTITION BY tenant_id ORDER BY period, from_seq)`,
  `CREATE TABLE public.cents AS
   SELECT *, div(total, ${NANOS_PER_CENT}) - div(total - nanos, ${NANOS_PER_CENT}) AS cents
   FROM public.cover`,
  `CREATE TABLE public.gathering AS
   SELECT tenant_id, sum(cost_nanos) AS nanos
   FROM billing.charge
   WHERE period = '${RUNNING}' AND seq > ${last - GATHERING}
   GROUP BY 1`,
  `CREATE TABLE public.overrun AS
   SELECT tenant_id, sum(overrun_nanos) AS nanos
   FROM billing.charge
   WHERE overrun_nanos > 0
   GROUP BY 1`,
  `CREATE TABLE public.entry AS
   SELECT c.*, 'ent_' || c.tenant_id || '_' || number AS id,
     row_number() OVER w + 1 AS sequence,
     CASE WHEN row_number() OVER w = count(*) OVER (PARTITION BY c.tenant_id)
       THEN coalesce(div(o.nanos, ${NANOS_PER_CENT}), 0)
       ELSE 0
     END AS overrun_cents
   FROM public.cents c
   LEFT JOIN public.overrun o USING (tenant_id)
   WHERE cents > 0
   WINDOW w AS (PARTITION BY c.tenant_id ORDER BY number)`,
  `INSERT INTO billing.tenant_books (tenant_id, version, balance_cents, last_sequence, last_cover, carried_nanos,
     gathered_nanos, overrun_nanos)
   SELECT tenant_id, 1, ${TOPUP_CENTS} - div(c.total, ${NANOS_PER_CENT}), e.entries + 1, c.covers,
     c.total % ${NANOS_PER_CENT}, g.nanos, coalesce(o.nanos % ${NANOS_PER_CENT}, 0)
   FROM (SELECT tenant_id, count(*) AS covers, max(total) AS total FROM public.cover GROUP BY 1) c
   JOIN public.gathering g USING (tenant_id)
   JOIN (SELECT tenant_id, count(*) AS entries FROM public.entry GROUP BY 1) e USING (tenant_id)
   LEFT JOIN public.overrun o USING (tenant_id)`,
  `INSERT INTO billing.journal_entry (id, tenant_id, sequence, type, amount_cents, source, ref, input_hash, period,
     balance_after_cents, created_at)
   SELECT 'ent_' || tenant_id || '_0', tenant_id, 1, 'topup', ${TOPUP_CENTS}, 'manual', 'first', ${NO_HASH},
     '${CLOSED}', ${TOPUP_CENTS}, now()
   FROM public.tenant
   UNION ALL
   SELECT id, tenant_id, sequence, 'usage', -cents, 'metering', 'r' || number, ${NO_HASH}, period,
     ${TOPUP_CENTS} - div(total, ${NANOS_PER_CENT}), now()
   FROM public.entry`,
  `INSERT INTO billing.posting
   SELECT 'ent_' || tenant_id || '_0', account, amount
   FROM public.tenant, (VALUES ('credit', ${TOPUP_CENTS}), ('payments_clearing', -${TOPUP_CENTS})) p (account, amount)
   UNION ALL
   SELECT id, 'credit', -cents
   FROM public.entry
   UNION ALL
   SELECT id, 'usage_revenue', cents + overrun_cents
   FROM public.entry
   UNION ALL SELECT id, 'overrun', -overrun_cents FROM public.entry WHERE overrun_cents > 0`,
  CHAIN,
  `INSERT INTO billing.books_currency (currency) VALUES ('USD') ON CONFLICT DO NOTHING`,
  `INSERT INTO billing.coverage
   SELECT tenant_id, c.number, c.period, c.from_seq, c.to_seq, c.nanos, (c.total - c.nanos) % ${NANOS_PER_CENT},
     c.cents, c.total % ${NANOS_PER_CENT}, e.id
   FROM public.cents c LEFT JOIN public.entry e USING (tenant_id, number)`,
  `INSERT INTO billing.tenant_month
   SELECT tenant_id, c.period, ${last}, max(c.to_seq), CASE c.period WHEN '${RUNNING}' THEN g.nanos ELSE 0 END,
     sum(cents),
     CASE c.period WHEN '${CLOSED}' THEN now() END
   FROM public.cents c JOIN public.gathering g USING (tenant_id) GROUP BY tenant_id, c.period, g.nanos`,
  `INSERT INTO billing.budget_month
   SELECT tenant_id, period, coalesce(key_id, ''), sum(cost_nanos), NULL
   FROM billing.charge
   GROUP BY tenant_id, period, GROUPING SETS ((key_id), ())`,
  `INSERT INTO billing.invoice
   SELECT n, tenant_id, period, debited_cents, now()
   FROM public.tenant
   JOIN billing.tenant_month USING (tenant_id)
   WHERE period = '${CLOSED}'`,
  `UPDATE billing.invoice_counter SET last_number = (SELECT count(*) FROM public.tenant), closed_through = '${CLOSED}'`,
  `INSERT INTO admission.tenant (tenant_id, version, balance_nanos, settled_nanos)
   SELECT tenant_id, version, balance_cents * ${NANOS_PER_CENT} - carried_nanos - gathered_nanos,
     ${SETTLED_HOLDS_PER_TENANT * SETTLED_NANOS}
   FROM billing.tenant_books`,
  'DROP TABLE public.cover, public.cents, public.gathering, public.overrun, public.entry, public.tenant',
];

/** Settled just now: usage on its way to the books, which is no difference for ten minutes. */
const HOLDS = `
  INSERT INTO admission.hold (id, tenant_id, key_id, state, hold_nanos, cost_nanos, output_tokens, hold_tokens,
    key_tokens_per_minute, tenant_tokens_per_minute, deadline_ms, progressed_ms,
    unconfirmed_since_ms, record)
  SELECT 'req_' || h || tenant_id, tenant_id, 'key_0', 'settled', ${SETTLED_NANOS}, ${SETTLED_NANOS}, 1, 1, 1, 1, ms,
    ms, ms, '{}'
  FROM admission.tenant, generate_series(1, ${SETTLED_HOLDS_PER_TENANT}) h,
    (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) t`;

/** Created again after all inserts, which is faster than maintaining them. */
const SECOND_INDEXES = `
  SELECT indexrelid::regclass AS name, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') AS sql FROM pg_index
  WHERE indrelid IN ('metering.usage_event'::regclass, 'billing.charge'::regclass) AND NOT indisprimary`;

/** @param perMonth events per month, a multiple of `tenants` */
export async function fillBooks(client, { perMonth, tenants }) {
  await client.query('SET session_replication_role = replica');
  await client.query('SET synchronous_commit = off');
  await client.query(`SET maintenance_work_mem = '512MB'`);
  await client.query(`SET work_mem = '128MB'`);
  const { rows: indexes } = await client.query(SECOND_INDEXES);
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  for (const month of MONTHS) {
    const [from, to] = [month.startMs, month.endMs].map((ms) => idBound('req', ms));
    await client.query(
      `CREATE TABLE metering.usage_event_${month.period.replace('-', '_')}
       PARTITION OF metering.usage_event FOR VALUES FROM ('${from}') TO ('${to}')`,
    );
    for (let k = 0; k < SLICES; k++) {
      const [first, end] = [k, k + 1].map((part) => Math.floor((perMonth * part) / SLICES));
      for (const sql of slice(month, { from: first, to: end, perMonth, tenants })) await client.query(sql);
    }
  }
  for (const sql of following(perMonth / tenants)) await client.query(sql);
  for (const { sql } of indexes) await client.query(sql);
  await client.query('VACUUM (ANALYZE)');
  // Last, because holds must be young when reconcile looks.
  await client.query(HOLDS);
}
