export { BillingModule, type BillingOptions } from './billing.module';
export { MIGRATIONS } from './database';
export { BillingSettings } from './settings';
