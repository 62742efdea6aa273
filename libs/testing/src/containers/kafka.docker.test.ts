import { eventually } from '../eventually';
import { ask } from './ask';
import { useKafka } from './kafka';

describe('a Kafka in a container', () => {
  const kafka = useKafka({ settings: { KAFKA_MESSAGE_MAX_BYTES: '2000000' } });
  const listens = (): Promise<Buffer> => ask(kafka.port, apiVersions(), (bytes) => bytes.length >= 4);

  it('accepts settings, answers the host, and keeps its data and its port through stop and kill', async () => {
    await listens();
    expect(await kafka.logs()).toMatch(/message\.max\.bytes = 2000000/);
    const cluster = await clusterId();
    await kafka.stop();
    await kafka.start();
    await kafka.kill();
    await kafka.start();
    expect(await clusterId()).toBe(cluster);
    expect(kafka.brokers).toEqual([`127.0.0.1:${kafka.port}`]);
  });

  it('is silent while paused, and refuses connections while disconnected', async () => {
    await kafka.pause();
    await expect(listens()).rejects.toThrow('no answer');
    await kafka.unpause();
    await eventually(listens);
    await kafka.disconnect();
    await expect(listens()).rejects.toThrow(/ECONNREFUSED|ECONNRESET|closed/);
    await kafka.connect();
    await eventually(listens);
  });

  const clusterId = async (): Promise<string> =>
    kafka.exec(['grep', 'directory.id', '/var/lib/kafka/data/meta.properties']);
});

/** An ApiVersions request of version 0 without a client id. Every broker answers it. */
function apiVersions(): Buffer {
  return Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]);
}
