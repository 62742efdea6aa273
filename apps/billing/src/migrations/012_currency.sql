-- The currency of every amount in these books: amounts are numbers, and nothing converts them. One row, written at the first start; what the configuration says must be it as long as there is anything in the books.
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
