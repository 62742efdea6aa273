import { join } from 'node:path';

export { BillingModule, type BillingOptions } from './billing.module';

export const MIGRATIONS = { schema: 'billing', directory: join(__dirname, 'migrations') };
