import { randomBytes } from 'node:crypto';
import { REQUEST_TOPICS, TOPICS } from '@tollgate/contracts';
import { eventually, type KafkaServer } from '@tollgate/testing';
import { applyTopics, checkTopics, withAdmin } from './apply-topics';
import type { Topics } from './topic-plan';

/** With a Kafka that other tests use too: every store has topics of its own. */
export function topicsTests(kafka: KafkaServer): void {
  const connection = () => ({ brokers: kafka.brokers, clientId: 'test' });
  const prefix = () => `test-${randomBytes(5).toString('hex')}.`;
  const withPartitions = (partitions: number): Topics => ({ ...TOPICS, charges: { ...TOPICS.charges, partitions } });

  describe('topics apply', () => {
    it('fails a start without topics with an error that names each topic and the cure', async () => {
      await expect(checkTopics(connection(), { topicPrefix: 'none.' })).rejects.toThrow(
        new RegExp(
          'missing: .*"none\\.charges".*"none\\.charges\\.dead".*"none\\.requests\\.auth".*"none\\.replies"' +
            '.*tollgate topics apply',
        ),
      );
    });

    it('creates the topics of the tables, reports it, and finds nothing to do the second time', async () => {
      const topicPrefix = prefix();
      const lines: string[] = [];
      await applyTopics(connection(), { topicPrefix, print: (line) => lines.push(line) });
      expect(lines).toHaveLength(2 * Object.keys(TOPICS).length + Object.keys(REQUEST_TOPICS).length);
      expect(lines).toContain(`${topicPrefix}usage-events: created with 12 partitions`);
      await checkTopics(connection(), { topicPrefix });
      lines.length = 0;
      await applyTopics(connection(), { topicPrefix, print: (line) => lines.push(line) });
      expect(new Set(lines.map((line) => line.split(': ')[1]))).toEqual(new Set(['correct']));
    });

    it('may run in several places at once', async () => {
      const topicPrefix = prefix();
      await Promise.all(Array.from({ length: 3 }, () => applyTopics(connection(), { topicPrefix })));
      await checkTopics(connection(), { topicPrefix });
    });

    it('adds partitions only when told to, and otherwise reports that they are too few', async () => {
      const topicPrefix = prefix();
      await applyTopics(connection(), { topicPrefix, topics: withPartitions(2) });
      const wanted = { topicPrefix, topics: withPartitions(4) };
      await expect(checkTopics(connection(), wanted)).rejects.toThrow(
        /charges" has 2 partitions, not 4.*--grow-partitions/,
      );
      await expect(applyTopics(connection(), wanted)).rejects.toThrow(/charges" has 2 partitions, not 4/);
      await applyTopics(connection(), { ...wanted, growPartitions: true });
      await checkTopics(connection(), wanted);
      // More partitions than in the table are no error.
      await checkTopics(connection(), { topicPrefix, topics: withPartitions(2) });
    });

    it('finds and corrects settings that would lose messages', async () => {
      const topicPrefix = prefix();
      await withAdmin(connection(), 10_000, (admin) =>
        admin.createTopics({
          waitForLeaders: false,
          topics: [
            {
              topic: `${topicPrefix}charges`,
              numPartitions: 12,
              configEntries: [{ name: 'cleanup.policy', value: 'compact' }],
            },
          ],
        }),
      );
      const lines: string[] = [];
      await eventually(() =>
        expect(checkTopics(connection(), { topicPrefix })).rejects.toThrow(
          /charges" has cleanup.policy=compact, not delete/,
        ),
      );
      await applyTopics(connection(), { topicPrefix, print: (line) => lines.push(line) });
      expect(lines.join('\n')).toMatch(/charges: cleanup.policy compact → delete/);
      await checkTopics(connection(), { topicPrefix });
    });
  });
}
