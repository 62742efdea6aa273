import { applyTopics, checkTopics } from '@tollgate/messaging';
import { withBrokers, type Brokers } from './kafka';
import type { Output } from './output';

/** Creates and corrects the topics; says what it did to each. Safe to repeat. */
export async function applyAll(
  { connection, topicPrefix }: Brokers,
  output: Output,
  options: { growPartitions: boolean; replicationFactor?: number },
): Promise<void> {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  try {
    await withBrokers('topics_not_applied', () => applyTopics(connection, { topicPrefix, print, ...options }));
  } catch (error) {
    // What was done before it failed stays done.
    for (const line of lines) output.note(line);
    throw error;
  }
  const topics = lines.map((line) => {
    const at = line.indexOf(': ');
    return { topic: line.slice(0, at), result: line.slice(at + 2) };
  });
  output.answer({ ok: true, topics }, lines.join('\n'));
}

/** Changes nothing; fails with every topic that is missing or wrong. */
export async function checkAll({ connection, topicPrefix }: Brokers, output: Output): Promise<void> {
  await withBrokers('topics_wrong', () => checkTopics(connection, { topicPrefix }));
  output.answer({ ok: true }, 'All topics are as they must be.');
}
