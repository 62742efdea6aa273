import { KafkaSettings, MessageKeysSettings } from '@tollgate/messaging';
import { DatabaseSettings } from '@tollgate/postgres';
import { RedisSettings } from '@tollgate/redis';
import { ConfigFileSettings, SimulatorSettings, TracingSettings } from '@tollgate/runtime';

/** All settings of the service besides SERVICE_SETTINGS. */
export const SETTINGS = [
  KafkaSettings,
  MessageKeysSettings,
  RedisSettings,
  DatabaseSettings,
  ConfigFileSettings,
  SimulatorSettings,
  TracingSettings,
] as const;
