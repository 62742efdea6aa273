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
import { logCapped, logger, settlesWithin, withTimeout } from '@tollgate/runtime';
import { forgedMessages, unreadableRequests } from '../../message-metrics';
import { MessagesRefusedError } from '../../messages';
import { endOf, withAdmin } from '../admin/apply-topics';
import type { KafkaConnection } from '../client/connection';
import { isClockRecord, MAX_MESSAGE_BYTES, type Publisher } from '../publish/publisher';
import { readReply, writeRequest } from './request-message';
import type { RightMissingError } from '../client/rights';
import type { Signatures } from '../sign/signatures';
import { SupervisedConsumer } from '../client/supervised-consumer';
import { requestTopic, type Names } from '../admin/topic-plan';

/** The maximum number of this process's requests that await replies. */
const MAX_PENDING_REQUESTS = 10_000;
/** At the start: a broker makes a new group wait for more members (3 s by default). */
const READY_TIMEOUT_MS = 8_000;
const SESSION_TIMEOUT_MS = 30_000;
const HEARTBEAT_MS = 1_000;
/** At the end, which does not wait for silent brokers. */
const REMOVE_GROUPS_TIMEOUT_MS = 1_000;
const MAX_REMEMBERED_GROUPS = 100;

interface Pending {
  /** The service that answers, and the identity that asked. */
  by: RequestService;
  asker: Service;
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

/**
 * The requesting side of request–reply. Only this replica reads one randomly chosen partition of `replies`, in its
 * own group with a fixed assignment. So replicas that come and go never make it rebalance. If two replicas share a
 * partition, each takes the replies to its own requests.
 */
export class RequestClient {
  private readonly pending = new Map<string, Pending>();
  private readonly partition = randomInt(REQUEST_TOPICS.replies.partitions);
  private readonly replies: SupervisedConsumer;
  /**
   * The next reply to read. It is known before the first request: the group commits nothing, and a consumer that
   * rejoins it, even before its first reply, would otherwise skip to the end.
   */
  private nextOffset = '0';
  private reads = false;
  private groupId = '';
  /** The groups that it has used: one, unless connections broke. */
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
        // A new group for each consumer. In the same group it would wait until the session of its dead predecessor is
        // over.
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

  /** Resolves when replies are read. May be repeated after a failure. */
  async start(): Promise<void> {
    const topic = this.names.topic('replies');
    // This also checks that publishing works.
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
    // If it takes longer, requests wait for it as they wait for their replies.
    if (await settlesWithin(READY_TIMEOUT_MS, outcome)) await outcome;
  }

  async request(subject: Subject, request: unknown, deadlineMs: number): Promise<unknown> {
    if (this.closed) throw new UnavailableError('messages are closed');
    const by = serviceOf(subject);
    const asker = this.signatures.asOneOf(ASKERS[subject]);
    if (!asker) throw new MessagesRefusedError(`only ${ASKERS[subject].join(', ')} may request "${subject}"`);
    if (this.pending.size >= MAX_PENDING_REQUESTS) throw new UnavailableError('too many requests await replies');
    const id = newId('msg');
    const reply = new Promise<unknown>((resolve, reject) => {
      this.pending.set(id, { by, asker, resolve, reject });
      this.ask(id, subject, request, deadlineMs).catch(reject);
    });
    const late = () => new UnavailableError(`no answer to "${subject}" within ${deadlineMs} ms`);
    try {
      return await withTimeout(deadlineMs, reply, late);
    } finally {
      this.pending.delete(id);
    }
  }

  /** The right that the user lacks for consuming. */
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
   * Removes the groups, which nobody joins again. Those that it cannot remove (the process was killed, the right is
   * missing, or the brokers are silent) are removed by the brokers, as groups without members and offsets.
   */
  private async removeGroups(): Promise<void> {
    if (this.joined.size === 0) return;
    const removing = withAdmin(this.connection, REMOVE_GROUPS_TIMEOUT_MS, (admin) =>
      admin.deleteGroups([...this.joined]),
    );
    await removing.catch((error: unknown) =>
      logger('kafka').debug({ err: error }, 'the brokers will remove the groups of replies'),
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
      logCapped(logger('messaging'), 'warn', at, 'an unreadable reply was ignored');
    }
    // Absent: the reply was too late, or is another replica's.
    const pending = this.pending.get(id);
    if (!pending) return;
    const verified = this.signatures.verify(this.names.topic('replies'), message, pending.asker, [pending.by]);
    if ('reason' in verified) {
      forgedMessages.inc({ topic: 'replies', group: 'replies' });
      const about = { ...at, reason: verified.reason };
      logCapped(logger('messaging'), 'error', about, 'a forged reply was ignored; waiting for the genuine one');
      return;
    }
    if ('reply' in outcome) pending.resolve(outcome.reply);
    else if ('refusal' in outcome) pending.reject(new RequestError(outcome.refusal.code, outcome.refusal.message));
    else pending.reject(new UnavailableError('the request could not be answered'));
  }
}

/** Assigns this partition, and no other, to every member of the group. There is one member. */
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
