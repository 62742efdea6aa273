import { useTestDatabase } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const database = useTestDatabase();
const DOCUMENT = resolve(__dirname, '../../docs/rights-postgres.md');

/** The rights of a service's role, in the form of the lists in the document. */
const GRANTED = `
  SELECT n.nspname || '.' || c.relname AS object, concat_ws(', ',
      CASE WHEN has_table_privilege(r.oid, c.oid, 'SELECT') THEN 'SELECT' END,
      CASE WHEN has_table_privilege(r.oid, c.oid, 'INSERT') THEN 'INSERT' END,
      CASE WHEN has_table_privilege(r.oid, c.oid, 'UPDATE') THEN 'UPDATE'
           WHEN has_any_column_privilege(r.oid, c.oid, 'UPDATE') THEN 'UPDATE (' || (
             SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
             WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
               AND has_column_privilege(r.oid, c.oid, attnum, 'UPDATE')) || ')' END,
      CASE WHEN has_table_privilege(r.oid, c.oid, 'DELETE') THEN 'DELETE' END,
      CASE WHEN has_table_privilege(r.oid, c.oid, 'TRUNCATE, REFERENCES, TRIGGER') THEN 'more' END) AS rights
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.rolname = 'tollgate_' || n.nspname
  WHERE n.nspname IN ('auth', 'metering', 'billing', 'console') AND c.relkind IN ('r', 'p', 'v')
  UNION ALL
  SELECT n.nspname || '.' || p.proname, 'EXECUTE'
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_roles r ON r.rolname = 'tollgate_' || n.nspname
  WHERE n.nspname IN ('auth', 'metering', 'billing', 'console') AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
  ORDER BY 1`;
const NOBODYS = `
  SELECT n.nspname || '.' || c.relname AS object FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
  WHERE n.nspname IN ('auth', 'metering', 'billing', 'console')
    AND a.grantee NOT IN (c.relowner, to_regrole('tollgate_' || n.nspname))
  UNION ALL
  SELECT nspname FROM pg_namespace n, aclexplode(n.nspacl) a
  WHERE nspname IN ('auth', 'metering', 'billing', 'console')
    AND a.grantee NOT IN (nspowner, to_regrole('tollgate_' || nspname))`;

it('each service has exactly the documented rights', async () => {
  const items = readFileSync(DOCUMENT, 'utf8').matchAll(/^- `((?:auth|metering|billing|console)\.\w+)`: ([^.]+)\./gm);
  const documented = [...items].map(([, object, rights]) => `${object}: ${rights!.replace(/\s+/g, ' ')}`);
  const granted = await database.query<{ object: string; rights: string }>(GRANTED);
  expect(granted.map(({ object, rights }) => `${object}: ${rights}`).sort()).toEqual(documented.sort());
  expect(await database.query(NOBODYS)).toEqual([]);
});
