import { KafkaSettings, MessageKeysSettings } from '@tollgate/messaging';
import { DatabaseSettings } from '@tollgate/postgres';
import { RedisSettings } from '@tollgate/redis';
import { ConfigFileSettings, Setting, SimulatorSettings, TracingSettings, WholeNumber } from '@tollgate/runtime';
import { DEFAULT_USAGE_KEPT_MONTHS, MAX_USAGE_KEPT_MONTHS, MIN_USAGE_KEPT_MONTHS } from './retain/retention';

/** Settings of metering alone. */
export class MeteringSettings {
  @Setting('Months after its own end for which a month of usage events is kept. 1200 is a hundred years.')
  @WholeNumber(MIN_USAGE_KEPT_MONTHS, MAX_USAGE_KEPT_MONTHS)
  TOLLGATE_USAGE_KEPT_MONTHS: number = DEFAULT_USAGE_KEPT_MONTHS;
}

/** All settings of the service besides SERVICE_SETTINGS. */
export const SETTINGS = [
  KafkaSettings,
  MessageKeysSettings,
  RedisSettings,
  DatabaseSettings,
  ConfigFileSettings,
  SimulatorSettings,
  MeteringSettings,
  TracingSettings,
] as const;
