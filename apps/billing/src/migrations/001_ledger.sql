-- formerly sha256 4daf78e12c69047ba3e9d2d7a553ed7729c289c8a522af5e0bd2e1c429fec436
-- formerly sha256 6023ff86fb7007079f18f2540aa1f0d17c698dde604702baa8645f396f4afe5a
-- The ledger: double entry, append-only, per tenant.
--
-- Signs. A posting is positive where it credits its account and negative where it debits it; the postings of an entry
-- sum to zero. The tenant's `credit` account is our liability to it, so its sum is the tenant's balance, and an entry's
-- amount (as the tenant sees it: money in positive, a debit negative) is the entry's posting to `credit`.
--
-- Mutable: tenant_books and tenant_month (running state, all of it derivable from the journal and the charges; proven
-- by reconcile). Immutable: charge, journal_entry, posting, coverage (by rights.sql and by triggers). Of
-- rejected_charge only the count may change, upwards.

CREATE DOMAIN month AS text COLLATE "C" CHECK (VALUE ~ '^[0-9]{4}-(0[1-9]|1[0-2])$');

-- The head of a tenant's books. Every change of the tenant's books locks this row.
CREATE TABLE tenant_books (
  tenant_id text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  -- Incremented by every change. Balance updates carry it, so equal versions mean equal balances.
  version bigint NOT NULL DEFAULT 0,
  balance_cents bigint NOT NULL DEFAULT 0 CHECK (balance_cents BETWEEN -9007199254740991 AND 9007199254740991),
  -- Sequence number of the newest journal entry, number of the newest coverage; 0 for none.
  last_sequence bigint NOT NULL DEFAULT 0,
  last_cover bigint NOT NULL DEFAULT 0,
  -- The remainder that the newest coverage carried out, and charges not yet covered. Together: gathered and not yet
  -- posted.
  carried_nanos bigint NOT NULL DEFAULT 0 CHECK (carried_nanos BETWEEN 0 AND 9999999),
  gathered_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (gathered_nanos >= 0),
  suspended boolean NOT NULL DEFAULT false,
  last_posted_at timestamptz,
  -- When usage is to be posted; null while no whole cent can be.
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 60);
CREATE INDEX tenant_books_due ON tenant_books (due_at) WHERE due_at IS NOT NULL;

-- One tenant's usage of one UTC month: how far charges are numbered and covered, and the sum of its debits (the
-- invoice's amount).
CREATE TABLE tenant_month (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  period month NOT NULL,
  last_seq bigint NOT NULL DEFAULT 0,
  covered_seq bigint NOT NULL DEFAULT 0,
  gathered_nanos numeric(30, 0) NOT NULL DEFAULT 0 CHECK (gathered_nanos >= 0),
  debited_cents bigint NOT NULL DEFAULT 0 CHECK (debited_cents >= 0),
  PRIMARY KEY (tenant_id, period),
  CHECK (covered_seq BETWEEN 0 AND last_seq)
) WITH (fillfactor = 60);
CREATE INDEX tenant_month_uncovered ON tenant_month (tenant_id, period) WHERE covered_seq < last_seq;

-- One row per served request. `seq` counts without gaps per tenant and month, in the order of gathering, so that a
-- range of it names exact requests.
CREATE TABLE charge (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL,
  key_id text NOT NULL,
  cost_nanos bigint NOT NULL CHECK (cost_nanos >= 0),
  ended_at timestamptz NOT NULL,
  period month NOT NULL,
  seq bigint NOT NULL CHECK (seq > 0),
  gathered_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX charge_seq ON charge (tenant_id, period, seq) INCLUDE (cost_nanos);

-- Charges that cannot be booked, with the reason, for an operator. A repeat only increments the count: the hold of such
-- a charge is never released, so metering sends it again and again.
CREATE TABLE rejected_charge (
  -- SHA-256 of reason and data.
  digest bytea PRIMARY KEY CHECK (length(digest) = 32),
  reason text NOT NULL,
  -- The message as JSON text. jsonb would refuse some malformed messages.
  data text NOT NULL,
  times bigint NOT NULL DEFAULT 1 CHECK (times > 0),
  first_at timestamptz NOT NULL DEFAULT now(),
  last_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE journal_entry (
  id text COLLATE "C" PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  -- 1, 2, … without gaps per tenant.
  sequence bigint NOT NULL CHECK (sequence > 0),
  type text NOT NULL CHECK (type IN ('topup', 'usage', 'adjustment', 'refund')),
  amount_cents bigint NOT NULL CHECK (
    CASE type WHEN 'topup' THEN amount_cents > 0 WHEN 'adjustment' THEN amount_cents <> 0 ELSE amount_cents < 0 END
  ),
  source text NOT NULL CHECK (source <> ''),
  ref text NOT NULL CHECK (ref <> ''),
  -- SHA-256 of what was asked for: a repeat of the same idempotency key (tenant, source, ref) must ask for the same.
  input_hash bytea NOT NULL CHECK (length(input_hash) = 32),
  period month NOT NULL,
  balance_after_cents bigint NOT NULL CHECK (balance_after_cents BETWEEN -9007199254740991 AND 9007199254740991),
  created_at timestamptz NOT NULL,
  CONSTRAINT journal_entry_sequence UNIQUE (tenant_id, sequence),
  CONSTRAINT journal_entry_idempotency UNIQUE (tenant_id, source, ref),
  CONSTRAINT usage_comes_from_metering CHECK ((type = 'usage') = (source = 'metering')),
  -- Only an adjustment by a person may take a balance below zero.
  CONSTRAINT balance_not_below_zero CHECK (type = 'adjustment' OR amount_cents > 0 OR balance_after_cents >= 0)
);

CREATE TABLE posting (
  entry_id text COLLATE "C" NOT NULL REFERENCES journal_entry,
  account text NOT NULL CHECK (account IN ('credit', 'usage_revenue', 'payments_clearing', 'adjustments', 'overrun')),
  amount_cents bigint NOT NULL CHECK (amount_cents <> 0),
  PRIMARY KEY (entry_id, account)
);

-- The charges that a usage entry debits: a contiguous range of one tenant and month. The rows of a tenant form a chain
-- by the remainder that they carry on: charges + carried_in = amount × 10^7 + carried_out, exactly. Without an entry
-- (amount 0): the last charges of a month, less than a cent, whose remainder a later month takes on.
CREATE TABLE coverage (
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenant_books,
  number bigint NOT NULL CHECK (number > 0),
  period month NOT NULL,
  from_seq bigint NOT NULL,
  to_seq bigint NOT NULL CHECK (to_seq >= from_seq),
  charges_nanos numeric(30, 0) NOT NULL CHECK (charges_nanos >= 0),
  carried_in_nanos bigint NOT NULL CHECK (carried_in_nanos BETWEEN 0 AND 9999999),
  amount_cents bigint NOT NULL CHECK (amount_cents >= 0),
  carried_out_nanos bigint NOT NULL CHECK (carried_out_nanos BETWEEN 0 AND 9999999),
  entry_id text COLLATE "C" UNIQUE REFERENCES journal_entry,
  PRIMARY KEY (tenant_id, number),
  CONSTRAINT coverage_range UNIQUE (tenant_id, period, from_seq),
  CONSTRAINT covered_exactly CHECK (
    charges_nanos + carried_in_nanos = amount_cents::numeric * 10000000 + carried_out_nanos
  ),
  CONSTRAINT amount_has_an_entry CHECK ((entry_id IS NULL) = (amount_cents = 0))
);

-- The transactional outbox: a row is published if and only if its transaction commits. A row that can never be
-- published moves to outbox_refused.
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE outbox_refused (
  id bigint PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  refused_reason text NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);
