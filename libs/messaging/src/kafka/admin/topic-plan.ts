import {
  DEAD_TOPIC,
  REQUEST_TOPICS,
  type RequestService,
  type RequestTopic,
  type Service,
  type Topic,
  type TopicDefinition,
  type TopicStorage,
} from '@tollgate/contracts';

export type Topics = Record<Topic, TopicDefinition>;

/** The largest compressed batch of messages that a broker accepts. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** A quarantined message also carries its headers, so it may be larger. */
const MAX_DEAD_MESSAGE_BYTES = 2 * MAX_MESSAGE_BYTES;
/** Deletion works by whole segments: a segment must be closed well before its messages expire. */
const MAX_SEGMENT_MS = 24 * 60 * 60 * 1000;

/** A topic with the necessary settings in the cluster. */
export interface PlannedTopic {
  name: string;
  partitions: number;
  config: Record<string, string>;
}

export const requestTopic = (service: RequestService): RequestTopic => `requests.${service}`;

/** The names of topics and groups in a cluster, all with one prefix, so that several installations can share it. */
export class Names {
  constructor(private readonly prefix: string) {}

  topic(topic: Topic | RequestTopic): string {
    return this.prefix + topic;
  }

  dead(topic: Topic): string {
    return `${this.prefix}${topic}.dead`;
  }

  /** The group of a topic and one of its consumer groups, so that it rebalances alone. */
  group(topic: Topic | RequestTopic, group: string): string {
    return `${this.prefix}${topic}.${group}`;
  }

  /** The group of the replicas that answer a service's requests. */
  handlers(service: RequestService): string {
    return this.group(`requests.${service}`, 'handlers');
  }

  /** The prefix of the groups in which a service's replicas read replies, one each. */
  replyGroups(service: Service): string {
    return this.group('replies', `${service}.`);
  }
}

/** Every topic that the tables need. */
export function planTopics(topics: Topics, names: Names): PlannedTopic[] {
  return [
    ...(Object.entries(topics) as [Topic, TopicDefinition][]).flatMap(([topic, definition]) => [
      plan(names.topic(topic), definition, {}),
      plan(names.dead(topic), DEAD_TOPIC, { 'max.message.bytes': String(MAX_DEAD_MESSAGE_BYTES) }),
    ]),
    ...(Object.entries(REQUEST_TOPICS) as [RequestTopic, TopicStorage][]).map(([topic, storage]) =>
      // The broker's clock stamps them. By it both sides know whether a request is past its deadline (broker-clock.ts).
      plan(names.topic(topic), storage, { 'message.timestamp.type': 'LogAppendTime' }),
    ),
  ];
}

function plan(name: string, storage: TopicStorage, more: Record<string, string>): PlannedTopic {
  const retention: Record<string, string> = storage.compacted
    ? { 'cleanup.policy': 'compact' }
    : {
        'cleanup.policy': 'delete',
        'retention.ms': String(storage.retentionMs),
        'segment.ms': String(Math.min(MAX_SEGMENT_MS, storage.retentionMs)),
      };
  return {
    name,
    partitions: storage.partitions,
    // The broker recompresses what a foreign program sends: a codec that kafkajs lacks would stop a consumer.
    config: { ...retention, 'max.message.bytes': String(MAX_MESSAGE_BYTES), 'compression.type': 'gzip', ...more },
  };
}
