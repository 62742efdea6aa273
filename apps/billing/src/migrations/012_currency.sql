-- formerly sha256 a97cd457d50c3e6ec75b3311a6a8c4f6b34348bc074955e77f225e7310881a9d
-- The currency of all amounts in these books. Amounts are numbers, and nothing converts them. One row, written at the
-- first start. The configuration must have the same currency while the books have entries.
CREATE TABLE books_currency (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  currency text NOT NULL CHECK (currency ~ '^[A-Z]{3}$')
);

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tollgate_billing') THEN
    GRANT SELECT, INSERT, UPDATE ON books_currency TO tollgate_billing;
  END IF;
END $$;
