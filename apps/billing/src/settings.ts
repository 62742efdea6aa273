import { KafkaSettings, MessageKeysSettings } from '@tollgate/messaging';
import { DatabaseSettings } from '@tollgate/postgres';
import { RedisSettings, SettledReplicasSettings } from '@tollgate/redis';
import { ConfigFileSettings, Setting, TracingSettings, WholeNumber } from '@tollgate/runtime';
import { DEFAULT_CLOSE_DELAY_MS } from './invoices/invoice-closer';

const MINUTE_MS = 60_000;
const MAX_CLOSE_MINUTES = 20 * 24 * 60;

/** Settings of billing alone. */
export class BillingSettings {
  @Setting(
    'Minutes from the end of a month (UTC) until its invoices are closed. Later charges go to the current month.',
  )
  @WholeNumber(0, MAX_CLOSE_MINUTES)
  TOLLGATE_INVOICE_CLOSE_MINUTES: number = DEFAULT_CLOSE_DELAY_MS / MINUTE_MS;
}

/** All settings of the service besides SERVICE_SETTINGS. */
export const SETTINGS = [
  KafkaSettings,
  MessageKeysSettings,
  RedisSettings,
  SettledReplicasSettings,
  DatabaseSettings,
  ConfigFileSettings,
  BillingSettings,
  TracingSettings,
] as const;
