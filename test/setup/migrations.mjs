const below = (schema, folder) => ({ schema, directory: `${folder}/migrations`, functions: `${folder}/functions` });

// The folders of each schema's migrations and functions. The template database of the tests has all schemas.
export const MIGRATIONS = [
  below('auth', 'apps/auth/src'),
  below('metering', 'apps/metering/src'),
  below('billing', 'apps/billing/src'),
  { schema: 'console', directory: 'apps/console/src/migrations' },
  below('admission', 'libs/admission/src/postgres'),
  below('credentials', 'libs/credentials/src/postgres'),
];
