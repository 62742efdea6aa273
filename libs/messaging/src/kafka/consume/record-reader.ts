import type { Envelope, Service, Topic, TopicDefinition } from '@tollgate/contracts';
import type { KafkaMessage } from 'kafkajs';
import { open } from '../../envelope';
import { MAX_BATCH_MESSAGES, type BatchHandler, type MessageValidator } from '../../messages';
import type { DeadLetter } from './dead-letters';
import { unpackRecord } from '../publish/shared-records';
import type { Signatures } from '../sign/signatures';

export interface ConsumedGroup {
  topic: Topic;
  group: string;
  definition: TopicDefinition;
  /** The service that consumes as the group. */
  service: Service;
  handler: BatchHandler<unknown>;
  validate: MessageValidator | undefined;
}

export interface Quarantined {
  letter: DeadLetter;
  /** Forged: not from a service that may publish it. */
  forged: boolean;
}

/** The messages of one handler call: whole records of one partition. */
export interface Batch {
  firstOffset: string;
  lastOffset: string;
  messages: unknown[];
  dead: Quarantined[];
  /** The time of the oldest message, epoch milliseconds. */
  oldestMs: number;
}

/** Verifies and reads the records of a group. Finds forged and unreadable messages, for the quarantine. */
export class RecordReader {
  constructor(
    private readonly consumed: ConsumedGroup,
    /** The full name of the topic. */
    private readonly topic: string,
    private readonly signatures: Signatures,
  ) {}

  /**
   * Batches of whole records, in order, of at most MAX_BATCH_MESSAGES messages each, with the quarantined ones. A batch
   * is read when it is asked for.
   */
  *batches(records: readonly KafkaMessage[], partition: number): Generator<Batch> {
    let batch: Batch | undefined;
    for (const record of records) {
      const read = this.read(record, partition);
      if (batch && sizeOf(batch) + sizeOf(read) > MAX_BATCH_MESSAGES) {
        yield batch;
        batch = undefined;
      }
      if (batch) append(batch, read);
      else batch = read;
    }
    if (batch) yield batch;
  }

  /** One record as a batch. A forged record is quarantined as a whole, an unreadable message alone. */
  private read(record: KafkaMessage, partition: number): Batch {
    const { definition, service, validate } = this.consumed;
    const { offset } = record;
    const batch: Batch = { firstOffset: offset, lastOffset: offset, messages: [], dead: [], oldestMs: Date.now() };
    const quarantine = (reason: string, forged: boolean, part: Partial<DeadLetter> = {}) =>
      batch.dead.push({ letter: { ...this.letterOf(record, partition, reason), ...part }, forged });
    const verified = this.signatures.verify(this.topic, record, service, definition.producers);
    if ('reason' in verified) {
      quarantine(`not authentic: ${verified.reason}`, true);
      return batch;
    }
    const unpacked = unpackRecord(record);
    if ('reason' in unpacked) {
      quarantine(unpacked.reason, false);
      return batch;
    }
    for (const [index, value] of unpacked.values.entries()) {
      const envelope = parse(value);
      const opened = envelope === undefined ? { reason: 'not JSON' } : open<unknown>(definition, envelope, validate);
      if ('data' in opened) {
        batch.messages.push(opened.data);
        batch.oldestMs = Math.min(batch.oldestMs, Date.parse((envelope as Envelope).at) || batch.oldestMs);
      } else if (unpacked.shared) {
        // The record's signature does not fit a part of it. This service has verified it, and holds the sender's key to
        // this service. So it signs the part, and a replay is believed: by this service, and by no other.
        const { headers = {} } = this.signatures.sign(
          this.topic,
          { key: record.key, partition, value },
          verified.from,
          [service],
        );
        quarantine(opened.reason, false, { index, value, headers });
      } else {
        quarantine(opened.reason, false);
      }
    }
    return batch;
  }

  private letterOf({ key, value, offset, headers = {} }: KafkaMessage, partition: number, reason: string): DeadLetter {
    const { topic, group } = this.consumed;
    return { topic, group, partition, offset, reason, at: new Date().toISOString(), key, value, headers };
  }
}

const sizeOf = ({ messages, dead }: Batch): number => messages.length + dead.length;

function append(batch: Batch, { lastOffset, messages, dead, oldestMs }: Batch): void {
  batch.lastOffset = lastOffset;
  batch.messages.push(...messages);
  batch.dead.push(...dead);
  batch.oldestMs = Math.min(batch.oldestMs, oldestMs);
}

/** The JSON value, or undefined. */
function parse(value: Buffer | null): unknown {
  if (!value) return undefined;
  try {
    return JSON.parse(value.toString()) as unknown;
  } catch {
    return undefined;
  }
}
