import type { RequestService, RequestTopic } from '@tollgate/contracts';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { OutgoingMessage } from './topic-publisher';

/** Version of the forms below; a request of another one is answered as unavailable. */
const VERSION = 1;

const HEADER = {
  id: 'tollgate-request',
  version: 'tollgate-version',
  replyPartition: 'tollgate-reply-partition',
  deadline: 'tollgate-deadline',
} as const;

/** A request as it travels. */
export interface RequestMessage {
  id: string;
  /** The partition of `replies` that the asking replica reads. */
  replyPartition: number;
  /** By the brokers' clock, epoch milliseconds: past it nobody waits for the answer. */
  deadlineMs: number;
  subject: string;
  request: unknown;
}

/** What comes back: the reply, the handler's refusal, or neither. */
export type Outcome = { reply: unknown } | { refusal: Refusal } | { unavailable: true };
type Refusal = { code: string; message: string };

export const requestTopic = (service: RequestService): RequestTopic => `requests.${service}`;

export function writeRequest(message: RequestMessage): OutgoingMessage {
  const { id, replyPartition, deadlineMs, subject, request } = message;
  return {
    key: id,
    value: Buffer.from(JSON.stringify({ subject, request })),
    headers: {
      [HEADER.id]: id,
      [HEADER.version]: String(VERSION),
      [HEADER.replyPartition]: String(replyPartition),
      [HEADER.deadline]: String(Math.ceil(deadlineMs)),
    },
  };
}

/** Undefined when it cannot be answered; `request` is undefined when it cannot be understood. */
export function readRequest({ headers = {}, value }: KafkaMessage): RequestMessage | undefined {
  const id = text(headers, HEADER.id);
  const replyPartition = Number(text(headers, HEADER.replyPartition) || NaN);
  const deadlineMs = Number(text(headers, HEADER.deadline) || NaN);
  if (!id || !Number.isInteger(replyPartition) || replyPartition < 0 || !Number.isFinite(deadlineMs)) return undefined;
  const body = text(headers, HEADER.version) === String(VERSION) ? parse(value) : {};
  return { id, replyPartition, deadlineMs, subject: String(body['subject'] ?? ''), request: body['request'] };
}

export function writeReply({ id, replyPartition }: RequestMessage, outcome: Outcome): OutgoingMessage {
  return {
    key: null,
    partition: replyPartition,
    value: Buffer.from(JSON.stringify(outcome)),
    headers: { [HEADER.id]: id },
  };
}

/** `readable`: it has an id and one of the forms of an outcome; otherwise who asked, if anybody can be told, is told that there is none. */
export function readReply({ headers = {}, value }: KafkaMessage): { id: string; outcome: Outcome; readable: boolean } {
  const { reply, refusal, unavailable } = parse(value) as Record<string, unknown> & { refusal?: Partial<Refusal> };
  const id = text(headers, HEADER.id);
  if (typeof refusal?.code === 'string') {
    const outcome = { refusal: { code: refusal.code, message: String(refusal.message ?? '') } };
    return { id, outcome, readable: id !== '' };
  }
  if (reply !== undefined) return { id, outcome: { reply }, readable: id !== '' };
  return { id, outcome: { unavailable: true }, readable: id !== '' && unavailable === true };
}

const text = (headers: IHeaders, name: string): string => String(headers[name] ?? '');

function parse(value: Buffer | null): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(value?.toString() ?? '');
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    // Not ours; the caller finds nothing in it and says so.
    return {};
  }
}
