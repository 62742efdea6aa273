import { readSettings } from '@tollgate/runtime';
import { KafkaSettings } from './kafka-settings';

const read = (more: Record<string, string>) => () =>
  readSettings({ KAFKA_BROKERS: 'kafka:9092', KAFKA_TLS: 'true', ...more }, [KafkaSettings]);

it.each([
  [
    { KAFKA_CA_FILE: '/not/here' },
    /^KAFKA_CA_FILE: \/not\/here cannot be read \(there is no such file or directory\)$/,
  ],
  [
    { KAFKA_CA_FILE: __filename },
    /^KAFKA_CA_FILE: \S+ must be a text in PEM with at least one certificate: it has none$/,
  ],
  [
    { KAFKA_CA_FILE: __filename, KAFKA_TLS: 'false' },
    /^KAFKA_CA_FILE has no effect without TLS: set KAFKA_TLS to true/,
  ],
])('authorities that cannot be used are refused: %j', (more, problem) => {
  expect(read(more)).toThrow(problem);
});
