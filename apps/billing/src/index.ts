export { BillingModule } from './billing.module';
export type { BillingOptions } from './options';
export { MIGRATIONS } from './database';
export { BillingSettings } from './settings';
