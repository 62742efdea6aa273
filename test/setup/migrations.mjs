// Where each schema's migrations lie: the tests' template database has them all.
export const MIGRATIONS = [
  { schema: 'auth', directory: 'apps/auth/src/migrations' },
  { schema: 'metering', directory: 'apps/metering/src/migrations' },
  { schema: 'billing', directory: 'apps/billing/src/migrations' },
  { schema: 'admission', directory: 'libs/admission/src/postgres/migrations' },
  { schema: 'credentials', directory: 'libs/credentials/src/postgres/migrations' },
];
