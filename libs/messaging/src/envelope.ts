import type { MessageValidator } from './messages';
import { newId, type Envelope, type TopicDefinition } from '@tollgate/contracts';

/** A consumed message: what the handler gets, or why the message cannot be read. */
export type Opened<T> = { data: T } | { reason: string };

/** Wraps the messages of one publish call in envelopes of the topic's current version. */
export function seal<T>(definition: TopicDefinition, messages: readonly T[]): Envelope<T>[] {
  const at = new Date().toISOString();
  return messages.map((data) => ({ id: newId('msg'), v: definition.schemaVersion, at, data }));
}

/**
 * Reads what a transport delivered, which may be anything. Checks what every consumer relies on: envelope, version and
 * key. The types of other fields are trusted, because both sides compile against one type; a consumer may check them
 * too (`validate`).
 */
export function open<T>(definition: TopicDefinition, value: unknown, validate?: MessageValidator): Opened<T> {
  if (!isObject(value)) return { reason: 'not an envelope: not a JSON object' };
  const { id, v, at, data } = value;
  if (typeof id !== 'string' || typeof at !== 'string' || typeof v !== 'number') {
    return { reason: 'not an envelope: id, v and at are needed' };
  }
  if (v !== definition.schemaVersion)
    return { reason: `version ${v}, but version ${definition.schemaVersion} is read here` };
  if (!isObject(data)) return { reason: 'data is not a JSON object' };
  if (typeof data[definition.key] !== 'string') return { reason: `data has no ${definition.key}` };
  const reason = validate?.(data) ?? null;
  return reason === null ? { data: data as T } : { reason };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
