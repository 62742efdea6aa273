import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto';
import { SERVICES, type Service, type ServicePair } from '@tollgate/contracts';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { OutgoingMessage } from '../publish/topic-publisher';
import type { KeyRing } from './message-keys';

/** The prefix of significant headers. All of them are signed, except the signatures themselves. */
const MEANINGFUL = 'tollgate-';
/** One header for each service that gets the message: `tollgate-mac-billing`. */
const SIGNATURE = 'tollgate-mac-';
/** `1 <from> <key id> <HMAC-SHA256>` */
const FORM = /^1 ([a-z]+) ([a-z0-9]{1,16}) ([A-Za-z0-9_-]{43})$/;
const FORMS_VERSION = 'tollgate-mac/1';

/** The identity of this process among the services. */
export interface Identity {
  /** One service; several only where one process plays the parts of several. */
  services: readonly Service[];
  keys: KeyRing;
}

/** The sender, or why the message is refused. */
export type Verified = { from: Service } | { reason: string };

type Signed = Pick<KafkaMessage, 'key' | 'value' | 'headers'>;

/**
 * Signs this process's messages and verifies those it gets: HMAC-SHA256 over the topic, the key, the significant
 * headers and the payload, with a key that two services share for one direction. A service that can verify can also
 * sign, so a compromised service can forge only messages to itself. The brokers and their administrators can forge none
 * (docs/decisions/0011).
 */
export class Signatures {
  constructor(private readonly identity: Identity) {}

  /** The one service that this process is. Undefined if it plays the parts of several. */
  get service(): Service | undefined {
    const { services } = this.identity;
    return services.length === 1 ? services[0] : undefined;
  }

  /** Which of these services this process is. */
  asOneOf(services: readonly Service[]): Service | undefined {
    return services.find((service) => this.identity.services.includes(service));
  }

  /** The message with a signature for each of `to`. `topic` is its full name. Throws when there is no key. */
  sign(topic: string, message: OutgoingMessage, from: Service, to: readonly Service[]): OutgoingMessage {
    const headers: IHeaders = { ...message.headers };
    const signed = { key: bytesOf(message.key), value: message.value, headers };
    for (const each of to) {
      const pair = { from, to: each };
      const key = this.identity.keys.signing(pair);
      if (!key) throw new Error(`there is no message key from ${from} to ${each}`);
      headers[SIGNATURE + each] = `1 ${from} ${key.id} ${mac(topic, signed, pair, key).toString('base64url')}`;
    }
    return { ...message, headers };
  }

  /** `to`: the service that this process is for the message. `allowed`: the services that may send it. */
  verify(topic: string, message: Signed, to: Service, allowed: readonly Service[]): Verified {
    // A header without a value is null, whatever the types of kafkajs say.
    const header = message.headers?.[SIGNATURE + to] ?? undefined;
    if (header === undefined) return { reason: `not signed for ${to}` };
    const [, name, id, given] = (single(header) && FORM.exec(header.toString())) || [];
    const from = SERVICES.find((service) => service === name);
    if (!from) return { reason: 'its signature cannot be read' };
    if (!allowed.includes(from)) return { reason: `signed by ${from}, but only ${allowed.join(', ')} may send it` };
    const pair = { from, to };
    const key = this.identity.keys.named(pair, id!);
    if (!key) return { reason: `signed with the key "${id}" from ${from} to ${to}, which is not valid here` };
    if (timingSafeEqual(mac(topic, message, pair, key), Buffer.from(given!, 'base64url'))) return { from };
    return { reason: `altered, or not signed by ${from}: the signature does not fit` };
  }

  close(): void {
    this.identity.keys.close();
  }
}

/** The payload goes in last and unchanged. One line of JSON precedes it, so no two messages give the same bytes. */
function mac(
  topic: string,
  { key, value, headers = {} }: Signed,
  pair: ServicePair,
  by: { id: string; key: KeyObject },
): Buffer {
  const meaningful = Object.keys(headers)
    .filter((name) => name.startsWith(MEANINGFUL) && !name.startsWith(SIGNATURE))
    .sort()
    .map((name) => [name, textOf(headers[name])]);
  const line = [FORMS_VERSION, pair.from, pair.to, by.id, topic, textOf(key), meaningful, value?.length ?? null];
  const hmac = createHmac('sha256', by.key).update(`${JSON.stringify(line)}\n`);
  if (value) hmac.update(value);
  return hmac.digest();
}

const bytesOf = (key: Buffer | string | null): Buffer | null => (typeof key === 'string' ? Buffer.from(key) : key);

const single = (header: IHeaders[string]): header is Buffer | string => !Array.isArray(header) && header !== undefined;

/** Each byte becomes one character, so different bytes never give the same text. A repeated header is not text. */
function textOf(value: IHeaders[string] | null): string | string[] | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((each) => textOf(each) as string);
  return (typeof value === 'string' ? Buffer.from(value) : value).toString('latin1');
}
