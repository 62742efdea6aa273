import { configureLogging, readSettings, SettingsError } from '@tollgate/runtime';
import { kafkaConnection, KafkaSettings, type KafkaConnection } from '@tollgate/messaging';
import { Failure, UsageFailure } from './failure';

/** The brokers of a Tollgate, and what its topics begin with. */
export interface Brokers {
  connection: KafkaConnection;
  topicPrefix: string;
}

/** By the services' own settings (KAFKA_BROKERS and so on). Throws UsageFailure with a line for each that is wrong. */
export function findBrokers(env: NodeJS.ProcessEnv): Brokers {
  // What fails is said once, by the command.
  configureLogging({ level: 'silent', pretty: false });
  try {
    const settings = readSettings(env, [KafkaSettings]);
    return { connection: kafkaConnection(settings, 'tollgate-cli'), topicPrefix: settings.KAFKA_TOPIC_PREFIX };
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageFailure(error.message);
    throw error;
  }
}

/** Does something with the brokers; what goes wrong becomes a Failure with this code. */
export async function withBrokers<T>(code: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Failure || error instanceof UsageFailure) throw error;
    throw new Failure(error instanceof Error ? error.message : String(error), code);
  }
}
