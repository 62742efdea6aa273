import { configureLogging, readSettings, SettingsError } from '@tollgate/runtime';
import { kafkaConnection, KafkaSettings, type KafkaConnection } from '@tollgate/messaging';
import { Failure, UsageFailure } from '../command/failure';

/** The brokers of a Tollgate, and the prefix of its topics. */
export interface Brokers {
  connection: KafkaConnection;
  topicPrefix: string;
}

/** Reads the services' own settings (KAFKA_BROKERS and so on). Throws UsageFailure with a line for each wrong one. */
export function findBrokers(env: NodeJS.ProcessEnv): Brokers {
  // The command reports each failure once.
  configureLogging({ level: 'silent', pretty: false });
  try {
    const settings = readSettings(env, [KafkaSettings]);
    return { connection: kafkaConnection(settings, 'tollgate-cli'), topicPrefix: settings.KAFKA_TOPIC_PREFIX };
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageFailure(error.message);
    throw error;
  }
}

/** Works with the brokers, and turns an error into a Failure with this code. */
export async function withBrokers<T>(code: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Failure || error instanceof UsageFailure) throw error;
    throw new Failure(error instanceof Error ? error.message : String(error), code);
  }
}
