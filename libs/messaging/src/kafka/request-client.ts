import { randomInt, randomUUID } from 'node:crypto';
import {
  ASKERS,
  newId,
  REQUEST_TOPICS,
  RequestError,
  serviceOf,
  UnavailableError,
  type RequestService,
  type Service,
  type Subject,
} from '@tollgate/contracts';
import { AssignerProtocol, type KafkaMessage, type PartitionAssigner } from 'kafkajs';
import { logCapped, logger, settlesWithin } from '@tollgate/runtime';
import { forgedMessages, unreadableRequests } from '../message-metrics';
import { MessagesRefusedError } from '../messages';
import { endOf, withAdmin } from './apply-topics';
import type { KafkaConnection } from './connection';
import { isClockRecord, MAX_MESSAGE_BYTES, type Publisher } from './publisher';
import { readReply, requestTopic, writeRequest } from './request-message';
import type { RightMissingError } from './rights';
import type { Signatures } from './sign/signatures';
import { SupervisedConsumer } from './supervised-consumer';
import type { Names } from './topic-plan';

/** Requests of this process that wait for their answers. */
const MAX_PENDING_REQUESTS = 10_000;
/** At the start: a broker lets a new group wait for more members (3 s by default). */
const READY_TIMEOUT_MS = 8_000;
const SESSION_TIMEOUT_MS = 30_000;
const HEARTBEAT_MS = 1_000;
/** For the end, which waits for nobody that is silent. */
const REMOVE_GROUPS_TIMEOUT_MS = 1_000;
const MAX_REMEMBERED_GROUPS = 100;

interface Pending {
  /** Who answers, and as whom it was asked. */
  by: RequestService;
  asker: Service;
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

/**
 * The asking side of request–reply. This replica alone reads one partition of `replies`, chosen at random, in a group
 * of its own with a fixed assignment: replicas that come and go never make it rebalance. Two that share a partition
 * each take the replies to their own requests.
 */
export class RequestClient {
  private readonly pending = new Map<string, Pending>();
  private readonly partition = randomInt(REQUEST_TOPICS.replies.partitions);
  private readonly replies: SupervisedConsumer;
  /**
   * The next reply to read, known before anything is asked: the group commits nothing, and a consumer that joins it
   * again, also before its first reply, would skip to the end.
   */
  private nextOffset = '0';
  private reads = false;
  private groupId = '';
  /** Those that it has been in: one, unless connections broke. */
  private readonly joined = new Set<string>();
  private closed = false;

  constructor(
    private readonly connection: KafkaConnection,
    private readonly names: Names,
    private readonly publisher: Publisher,
    private readonly signatures: Signatures,
  ) {
    const topic = names.topic('replies');
    const { service } = signatures;
    const groups = service ? names.replyGroups(service) : names.group('replies', '');
    const partition = this.partition;
    this.replies = new SupervisedConsumer({
      connection,
      topic,
      fromBeginning: false,
      alone: true,
      config: () => ({
        // Another group for each consumer: in the same one it would wait for its dead predecessor until that one's
        // session is over.
        groupId: (this.groupId = groups + randomUUID()),
        partitionAssigners: [onlyPartition(partition)],
        sessionTimeout: SESSION_TIMEOUT_MS,
        heartbeatInterval: HEARTBEAT_MS,
      }),
      onJoin: (consumer) => {
        if (this.joined.size < MAX_REMEMBERED_GROUPS) this.joined.add(this.groupId);
        consumer.seek({ topic, partition, offset: this.nextOffset });
      },
      run: () => ({
        autoCommit: false,
        eachBatch: async ({ batch }) => {
          this.nextOffset = String(BigInt(batch.lastOffset()) + 1n);
          for (const message of batch.messages) this.onReply(message);
        },
      }),
    });
  }

  /** Resolves when replies are read. May be called again after it has failed. */
  async start(): Promise<void> {
    const topic = this.names.topic('replies');
    // It also shows that publishing works.
    await this.publisher.setClock(topic);
    const end = await endOf(this.connection, topic, this.partition);
    if (this.closed) throw new UnavailableError('messages are closed');
    if (!this.reads) {
      this.reads = true;
      this.nextOffset = end;
      this.replies.start();
    }
    const refused = this.replies.refused.then(() => Promise.reject(this.replies.lack!));
    // eslint-disable-next-line no-restricted-syntax -- ready or refused, whichever comes first
    const outcome = Promise.race([this.replies.ready, refused]);
    // If it takes longer, requests wait for it as they wait for their answers.
    if (await settlesWithin(READY_TIMEOUT_MS, outcome)) await outcome;
  }

  async request(subject: Subject, request: unknown, deadlineMs: number): Promise<unknown> {
    if (this.closed) throw new UnavailableError('messages are closed');
    const by = serviceOf(subject);
    const asker = this.signatures.asOneOf(ASKERS[subject]);
    if (!asker) throw new MessagesRefusedError(`"${subject}" is asked by ${ASKERS[subject].join(', ')} alone`);
    if (this.pending.size >= MAX_PENDING_REQUESTS) throw new UnavailableError('too many requests wait for an answer');
    const id = newId('msg');
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<unknown>((resolve, reject) => {
        this.pending.set(id, { by, asker, resolve, reject });
        const late = () => reject(new UnavailableError(`no answer to "${subject}" within ${deadlineMs} ms`));
        timer = setTimeout(late, deadlineMs);
        this.ask(id, subject, request, deadlineMs).catch(reject);
      });
    } finally {
      clearTimeout(timer);
      this.pending.delete(id);
    }
  }

  /** The right that it lacks to consume. */
  get lack(): RightMissingError | undefined {
    return this.replies.lack;
  }

  cut(): void {
    this.replies.cut();
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const { reject } of this.pending.values()) reject(new UnavailableError('messages are closed'));
    await this.replies.stop();
    await this.removeGroups();
  }

  /**
   * Nobody joins them again. Those that it cannot remove (it was killed, lacks the right, or the brokers are silent)
   * the brokers remove when they look for groups without members and offsets.
   */
  private async removeGroups(): Promise<void> {
    if (this.joined.size === 0) return;
    const removing = withAdmin(this.connection, REMOVE_GROUPS_TIMEOUT_MS, (admin) =>
      admin.deleteGroups([...this.joined]),
    );
    await removing.catch((error: unknown) =>
      logger('kafka').debug({ err: error }, 'groups of replies are left to the brokers'),
    );
  }

  private async ask(id: string, subject: Subject, request: unknown, deadlineMs: number): Promise<void> {
    const deadline = this.publisher.clock.latestMs() + deadlineMs;
    await this.replies.ready;
    const pending = this.pending.get(id);
    if (!pending) return;
    const named = requestTopic(pending.by);
    const message = writeRequest({
      ...{ id, subject, request, deadlineMs: deadline, replyPartition: this.partition },
      ...{ partition: randomInt(REQUEST_TOPICS[named].partitions), askedMs: Date.now() },
    });
    if (message.value!.length > MAX_MESSAGE_BYTES)
      throw new MessagesRefusedError(`a request for "${subject}" is over ${MAX_MESSAGE_BYTES} bytes`);
    const topic = this.names.topic(named);
    await this.publisher.send({ topic, messages: [this.signatures.sign(topic, message, pending.asker, [pending.by])] });
  }

  private onReply(message: KafkaMessage): void {
    const { id, outcome, readable } = readReply(message);
    const at = { topic: 'replies', partition: this.partition, offset: message.offset };
    if (!readable && !isClockRecord(message)) {
      unreadableRequests.inc({ topic: 'replies' });
      logCapped(logger('messaging'), 'warn', at, 'a reply cannot be read');
    }
    // Not there: it was too late, or is another replica's.
    const pending = this.pending.get(id);
    if (!pending) return;
    const verified = this.signatures.verify(this.names.topic('replies'), message, pending.asker, [pending.by]);
    if ('reason' in verified) {
      forgedMessages.inc({ topic: 'replies', group: 'replies' });
      const about = { ...at, reason: verified.reason };
      logCapped(logger('messaging'), 'error', about, 'a reply is not believed; the genuine one is waited for');
      return;
    }
    if ('reply' in outcome) pending.resolve(outcome.reply);
    else if ('refusal' in outcome) pending.reject(new RequestError(outcome.refusal.code, outcome.refusal.message));
    else pending.reject(new UnavailableError('the request could not be answered'));
  }
}

/** Every member of the group gets this partition and no other; there is one member. */
function onlyPartition(partition: number): PartitionAssigner {
  const name = 'tollgate-one-partition';
  const version = 0;
  const userData = Buffer.alloc(0);
  return () => ({
    name,
    version,
    assign: async ({ members, topics }) =>
      members.map(({ memberId }) => {
        const assignment = Object.fromEntries(topics.map((topic) => [topic, [partition]]));
        return {
          memberId,
          memberAssignment: AssignerProtocol.MemberAssignment.encode({ version, assignment, userData }),
        };
      }),
    protocol: ({ topics }) => ({
      name,
      metadata: AssignerProtocol.MemberMetadata.encode({ version, topics, userData }),
    }),
  });
}
