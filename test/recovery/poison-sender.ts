import { consumersOf, TOPICS, type Service, type Topic } from '@tollgate/contracts';
import { Signatures } from '@tollgate/messaging';
import { Publisher } from '../../libs/messaging/src/kafka/publish/publisher';
import type { OutgoingMessage } from '../../libs/messaging/src/kafka/publish/topic-publisher';
import type { Deployment } from '../services/deployment';
import { envelope, json } from './poison';

/** Some messages are large. */
const MESSAGES_PER_SEND = 8;

/** Publishes any bytes to topics, with valid signatures. */
export class PoisonSender {
  private readonly signatures: Signatures;
  private readonly publisher: Publisher;

  constructor({ identity, kafka }: Deployment) {
    this.signatures = new Signatures(identity);
    this.publisher = new Publisher({ brokers: kafka.brokers, clientId: 'test' });
  }

  close(): Promise<void> {
    return this.publisher.close();
  }

  /** Sends each poisoned value between valid messages of the same partition. */
  async poison(topic: Topic, tenantId: string, values: (Buffer | null)[], valid: () => object): Promise<void> {
    const all = [...values.flatMap((value) => [json(envelope(valid())), value]), json(envelope(valid()))];
    await this.send(
      topic,
      all.map((value) => ({ key: tenantId, value })),
    );
  }

  /** Sends the messages in order. */
  async send(topic: string, unsigned: OutgoingMessage[]): Promise<void> {
    const all = unsigned.map((message) => this.signed(topic, message));
    for (let from = 0; from < all.length; from += MESSAGES_PER_SEND)
      await this.publisher.send({ topic, messages: all.slice(from, from + MESSAGES_PER_SEND) });
  }

  /** Signs a message as a service that may publish it, so that only its content is wrong. Replies are not signed. */
  private signed(topic: string, message: OutgoingMessage): OutgoingMessage {
    if (topic === 'replies') return message;
    if (topic.startsWith('requests.'))
      return this.signatures.sign(topic, message, 'gateway', [topic.slice('requests.'.length) as Service]);
    const definition = TOPICS[topic as Topic];
    return this.signatures.sign(topic, message, definition.producers[0]!, consumersOf(definition));
  }
}
