import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { OutgoingMessage } from '../publish/topic-publisher';

/** Version of the forms below. A request of another version is answered as unavailable. */
const VERSION = 1;

const HEADER = {
  id: 'tollgate-request',
  version: 'tollgate-version',
  replyPartition: 'tollgate-reply-partition',
  deadline: 'tollgate-deadline',
  partition: 'tollgate-partition',
  asked: 'tollgate-asked',
} as const;

/** A request on the wire. */
export interface RequestMessage {
  id: string;
  /** The partition of `replies` that the requesting replica reads. */
  replyPartition: number;
  /** By the brokers' clock, epoch milliseconds. After it the reply is no longer awaited. */
  deadlineMs: number;
  /** The partition of the topic that the request was sent to. In another partition it is a copy by someone else. */
  partition: number;
  /** The time of the request by the requester's own clock, epoch milliseconds. The brokers cannot influence it. */
  askedMs: number;
  subject: string;
  request: unknown;
}

/** The answer: the reply, the handler's refusal, or neither. */
export type Outcome = { reply: unknown } | { refusal: Refusal } | { unavailable: true };
type Refusal = { code: string; message: string };

export function writeRequest(message: RequestMessage): OutgoingMessage {
  const { id, replyPartition, deadlineMs, partition, askedMs, subject, request } = message;
  return {
    key: id,
    partition,
    value: Buffer.from(JSON.stringify({ subject, request })),
    headers: {
      [HEADER.id]: id,
      [HEADER.version]: String(VERSION),
      [HEADER.replyPartition]: String(replyPartition),
      [HEADER.deadline]: String(Math.ceil(deadlineMs)),
      [HEADER.partition]: String(partition),
      [HEADER.asked]: String(askedMs),
    },
  };
}

/** Undefined if it cannot be answered. `request` is undefined, and `subject` empty, if it cannot be understood. */
export function readRequest({ headers = {}, value }: KafkaMessage): RequestMessage | undefined {
  const id = text(headers, HEADER.id);
  const replyPartition = number(headers, HEADER.replyPartition);
  const deadlineMs = number(headers, HEADER.deadline);
  const partition = number(headers, HEADER.partition);
  const askedMs = number(headers, HEADER.asked);
  if (!id || !Number.isInteger(replyPartition) || replyPartition < 0) return undefined;
  if (![deadlineMs, partition, askedMs].every(Number.isFinite)) return undefined;
  const body = text(headers, HEADER.version) === String(VERSION) ? parse(value) : {};
  const { subject, request } = body;
  return {
    ...{ id, replyPartition, deadlineMs, partition, askedMs, request },
    subject: typeof subject === 'string' ? subject : '',
  };
}

export function writeReply({ id, replyPartition }: RequestMessage, outcome: Outcome): OutgoingMessage {
  return {
    key: null,
    partition: replyPartition,
    value: Buffer.from(JSON.stringify(outcome)),
    headers: { [HEADER.id]: id },
  };
}

/**
 * `readable`: it has an id and one of the forms of an outcome. If it has only an id, its requester learns that there is
 * no reply.
 */
export function readReply({ headers = {}, value }: KafkaMessage): { id: string; outcome: Outcome; readable: boolean } {
  const { reply, refusal, unavailable } = parse(value) as Record<string, unknown> & { refusal?: Partial<Refusal> };
  const id = text(headers, HEADER.id);
  if (typeof refusal?.code === 'string') {
    const message = typeof refusal.message === 'string' ? refusal.message : '';
    const outcome = { refusal: { code: refusal.code, message } };
    return { id, outcome, readable: id !== '' };
  }
  if (reply !== undefined) return { id, outcome: { reply }, readable: id !== '' };
  return { id, outcome: { unavailable: true }, readable: id !== '' && unavailable === true };
}

const text = (headers: IHeaders, name: string): string => String(headers[name] ?? '');
const number = (headers: IHeaders, name: string): number => Number(text(headers, name) || NaN);

function parse(value: Buffer | null): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(value?.toString() ?? '');
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    // Not ours. The caller finds nothing in it and reports that.
    return {};
  }
}
