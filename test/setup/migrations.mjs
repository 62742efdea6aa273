const below = (schema, folder) => ({ schema, directory: `${folder}/migrations`, functions: `${folder}/functions` });

// Where each schema's migrations and functions lie: the tests' template database has them all.
export const MIGRATIONS = [
  below('auth', 'apps/auth/src'),
  below('metering', 'apps/metering/src'),
  below('billing', 'apps/billing/src'),
  below('admission', 'libs/admission/src/postgres'),
  below('credentials', 'libs/credentials/src/postgres'),
];
