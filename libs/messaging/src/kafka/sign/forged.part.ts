import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId, RequestError, type Charge, type LedgerEntry, type Service, type Topic } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import { MessagesRefusedError } from '../../messages';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../../messages-store.fixture';
import { replayDead } from '../consume/dead-letters';
import type { KafkaMessages } from '../kafka-messages';
import { readTopic } from '../consume/read-topic';
import { KeysFile } from './keys-file';
import { createMessageKeys, keysFileOf, rotateMessageKeys, type RotationStep } from './make-keys';
import { readKeys } from './message-keys';
import { Signatures, type Identity } from './signatures';
import { keysOf } from './test-identity.fixture';
import { KafkaStore } from '../test-store.fixture';
import type { OutgoingMessage } from '../publish/topic-publisher';

const PATIENT = { deadlineMs: 20_000 };
/** On a busy machine brokers may lose their leaders for a while. A failed start can be repeated. */
const begin = (...all: KafkaMessages[]) => Promise.all(all.map((messages) => eventually(() => messages.start())));
const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const envelope = (data: unknown) => json({ id: newId('msg'), v: 1, at: new Date().toISOString(), data });

async function count(name: string, labels: Record<string, string>): Promise<number> {
  const { values } = await metrics.getSingleMetric(name)!.get();
  const of = values.filter((each) => Object.entries(labels).every(([label, value]) => each.labels[label] === value));
  return of.reduce((sum, { value }) => sum + value, 0);
}
const forged = (topic: string) => count('tollgate_messages_forged_total', { topic });

/**
 * Forgeries by the brokers' administrator, who can write, copy and change every message but has no key, and by a
 * compromised service.
 */
export function forgedTests(kafka: { brokers: readonly string[] }): void {
  describe('a forged message', () => {
    let store: KafkaStore;
    beforeEach(async () => (store = await KafkaStore.create(kafka.brokers)));
    afterEach(() => store.close());
    function open(...services: Service[]): KafkaMessages {
      const messages = store.open({ identity: keysOf(...services) });
      return messages;
    }
    const put = (topic: string, ...messages: OutgoingMessage[]) =>
      store.publisher.send({ topic: store.prefix + topic, messages });
    /** All messages of the topic. */
    async function lying(topic: string): Promise<KafkaMessage[]> {
      const found: KafkaMessage[] = [];
      await readTopic(store.connection, store.prefix + topic, (message) => found.push(message));
      return found;
    }
    const sign = (identity: Identity, topic: string, message: OutgoingMessage, from: Service, to: Service) =>
      new Signatures(identity).sign(store.prefix + topic, message, from, [to]);

    it('is quarantined with its reason and counted, and blocks no genuine message', async () => {
      const received = new Received();
      const gateway = open('gateway');
      gateway.consume(TOPIC, SUITE_GROUP, received.handler);
      const billing = open('billing');
      await begin(gateway, billing);
      await billing.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => received.assertAllInOrder(['a'], 1));
      const [genuine] = await lying(TOPIC);
      const headers = genuine!.headers as IHeaders;
      const rich = { ...balanceUpdate('a', 999_999_999), balanceNanos: '9000000000000' };
      const value = envelope(rich);
      const auth = sign(keysOf('auth'), TOPIC, { key: 'a', value }, 'auth', 'gateway');
      const lied = String(auth.headers!['tollgate-mac-gateway']).replace('auth', 'billing');
      const forgeries: [OutgoingMessage, RegExp][] = [
        [{ key: 'a', value, headers: { constructor: 'x' } }, /not signed for gateway/],
        [{ key: 'a', value, headers }, /does not fit/],
        [{ key: 'b', value: genuine!.value, headers }, /does not fit/],
        [auth, /signed by auth, but only billing may send it/],
        [{ ...auth, headers: { 'tollgate-mac-gateway': lied } }, /does not fit/],
        [sign(keysOf('billing'), 'budget-events', { key: 'a', value }, 'billing', 'gateway'), /does not fit/],
      ];
      const before = await forged(TOPIC);
      await put(TOPIC, ...forgeries.map(([message]) => message));
      await billing.publish(TOPIC, [balanceUpdate('a', 2), balanceUpdate('b', 1)]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      const dead = await eventually(async () => {
        const letters = await store.deadLetters(TOPIC, SUITE_GROUP);
        expect(letters).toHaveLength(forgeries.length);
        return letters;
      });
      for (const [, reason] of forgeries)
        expect(dead.map((letter) => letter.reason)).toContainEqual(expect.stringMatching(reason));
      await eventually(async () => expect(await forged(TOPIC)).toBe(before + forgeries.length));

      // An operator replays them in good faith. They are still forged.
      await replayDead(store.connection, dead, { topicPrefix: store.prefix });
      await eventually(async () => expect(await forged(TOPIC)).toBe(before + 2 * forgeries.length));
      expect(await store.deadLetters(TOPIC, SUITE_GROUP)).toHaveLength(forgeries.length);
      const handled = received.messages.map(({ tenantId, version }) => `${tenantId}/${version}`).sort();
      expect(handled).toEqual(['a/1', 'a/2', 'b/1']);
    });

    it('cannot be published, requested, consumed or answered by a process with another identity', async () => {
      const gateway = open('gateway');
      expect(() => gateway.consume('charges', 'billing', async () => {})).toThrow(/not to this process/);
      expect(() => gateway.handle('auth.tenants.get', async () => null as never)).toThrow(/not for this process/);
      await begin(gateway);
      await expect(gateway.publish(TOPIC, [balanceUpdate('a', 1)])).rejects.toThrow(MessagesRefusedError);
      await expect(gateway.request('billing.tenants.tell', {} as never)).rejects.toThrow(MessagesRefusedError);
    });

    describe('as a request', () => {
      const SUBJECT = 'billing.credit.add';
      const request = { tenantId: 'ten_1', amountCents: 123_456, source: 'manual', ref: 'x' };
      let booked: string[];
      async function start() {
        booked = [];
        const billing = open('billing');
        billing.handle(SUBJECT, async ({ ref }) => {
          booked.push(ref);
          return { entry: {} as LedgerEntry, balanceCents: booked.length, created: true };
        });
        billing.handle('billing.tenants.tell', async () => {
          booked.push('told');
          throw new RequestError('told', 'told');
        });
        const gateway = open('gateway');
        await begin(billing, gateway);
        await gateway.request(SUBJECT, { ...request, ref: 'genuine' }, PATIENT);
        expect(booked).toEqual(['genuine']);
        const [genuine] = await lying('requests.billing');
        return { gateway, genuine: genuine! };
      }
      const passed = async (gateway: KafkaMessages, before: number, forgeries: number) => {
        await eventually(async () => expect(await forged('requests.billing')).toBe(before + forgeries));
        await gateway.request(SUBJECT, { ...request, ref: 'after' }, PATIENT);
        expect(booked).toEqual(['genuine', 'after']);
      };

      it('is counted and not handled: unsigned, altered, or by a service that may not send it', async () => {
        const { gateway, genuine } = await start();
        const before = await forged('requests.billing');
        const { headers, value, key } = genuine;
        const partition = Number(String(headers!['tollgate-partition']));
        const fresh = {
          ...headers,
          'tollgate-request': newId('msg'),
          'tollgate-deadline': String(Date.now() + 60_000),
        };
        const unsigned = Object.fromEntries(Object.entries(fresh).filter(([name]) => !name.includes('mac')));
        const tell = json({ subject: 'billing.tenants.tell', request: {} });
        await put(
          'requests.billing',
          { key, partition, value, headers: unsigned },
          { key, partition, value: json({ subject: SUBJECT, request }), headers: headers! },
          { key, partition, value, headers: fresh },
          { key, partition, value, headers: { ...headers, 'tollgate-deadline': fresh['tollgate-deadline'] } },
          // A compromised gateway sends what only auth may send, and auth what the gateway may send.
          sign(
            keysOf('gateway'),
            'requests.billing',
            { key, partition, value: tell, headers: unsigned },
            'gateway',
            'billing',
          ),
          sign(keysOf('auth'), 'requests.billing', { key, partition, value, headers: unsigned }, 'auth', 'billing'),
          sign(
            keysOf('gateway'),
            'requests.billing',
            { key, partition, value, headers: { ...unsigned, 'tollgate-asked': String(Date.now() - 3_600_000) } },
            'gateway',
            'billing',
          ),
        );
        await passed(gateway, before, 7);
      });

      it('is not handled as a repeat of a genuine one, on the same partition or another', async () => {
        const { gateway, genuine } = await start();
        const before = await forged('requests.billing');
        const { headers, value, key } = genuine;
        const partition = Number(String(headers!['tollgate-partition']));
        await put('requests.billing', { key, value, headers: headers!, partition });
        for (let other = 0; other < 6; other++)
          if (other !== partition) await put('requests.billing', { key, value, headers: headers!, partition: other });
        await passed(gateway, before, 5);
      });
    });

    it('is ignored as a reply, and the genuine reply is awaited', async () => {
      let answer = () => {};
      const held = new Promise<void>((resolve) => (answer = resolve));
      const auth = open('auth');
      auth.handle('auth.tenants.get', async ({ tenantId }) => {
        if (tenantId === 'held') await held;
        return { id: tenantId, name: 'genuine' } as never;
      });
      const gateway = open('gateway');
      await begin(auth, gateway);
      await gateway.request('auth.tenants.get', { tenantId: 'first' }, PATIENT);
      const before = await forged('replies');
      const reply = gateway.request('auth.tenants.get', { tenantId: 'held' }, PATIENT);
      const { headers } = await eventually(async () => {
        const asked = (await lying('requests.auth')).find(({ value }) => String(value).includes('held'));
        expect(asked).toBeDefined();
        return asked!;
      });
      const [genuine] = (await lying('replies')).filter(({ value }) => String(value).includes('first'));
      const own = {
        key: null,
        partition: Number(String(headers!['tollgate-reply-partition'])),
        headers: { 'tollgate-request': headers!['tollgate-request']! },
      };
      await put(
        'replies',
        { ...own, value: json({ reply: { id: 'held', name: 'forged' } }) },
        { ...own, value: json({ refusal: { code: 'not_found', message: 'forged' } }) },
        { ...own, value: json({ unavailable: true }) },
        // The answer to another request, and an answer of a service that was not asked.
        { ...own, value: genuine!.value, headers: { ...genuine!.headers, ...own.headers } },
        sign(
          keysOf('billing'),
          'replies',
          { ...own, value: json({ reply: { name: 'forged' } }) },
          'billing',
          'gateway',
        ),
      );
      await eventually(async () => expect(await forged('replies')).toBe(before + 5));
      answer();
      expect(await reply).toEqual({ id: 'held', name: 'genuine' });
    });

    it('is never suspected in a genuine message while keys are rotated step by step, and none is lost', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tollgate-keys-'));
      createMessageKeys(folder);
      const files = new Map(
        (['metering', 'billing'] as const).map((each) => [each, new KeysFile(keysFileOf(folder, each), each)]),
      );
      const start = async (service: 'metering' | 'billing', handler?: (batch: readonly Charge[]) => Promise<void>) => {
        const messages = store.open({ identity: { services: [service], keys: files.get(service)! } });
        if (handler) messages.consume('charges', 'billing', handler);
        await begin(messages);
        return messages;
      };
      try {
        const handled: string[] = [];
        await start('billing', async (batch) => void handled.push(...batch.map(({ id }) => id)));
        const metering = await start('metering');
        const before = await forged('charges');
        const published: string[] = [];
        let ended = false;
        const flow = (async () => {
          while (!ended) {
            const id = newId('req');
            await metering.publish('charges', [{ id, tenantId: 'ten_1' } as Charge]);
            published.push(id);
          }
        })();
        const some = async () => {
          const target = published.length + 5;
          await eventually(() => expect(handled.length).toBeGreaterThan(target));
        };
        const pair = { from: 'metering', to: 'billing' } as const;
        const ids = () =>
          readKeys(readFileSync(keysFileOf(folder, 'billing'), 'utf8'))
            .filter(({ from, to }) => from === pair.from && to === pair.to)
            .map(({ id }) => id);
        await some();
        for (const step of ['add', 'promote', 'remove'] satisfies RotationStep[]) {
          rotateMessageKeys(folder, step);
          const now = ids();
          await eventually(() => {
            for (const file of files.values()) {
              expect(file.signing(pair)?.id).toBe(now[0]);
              for (const id of now) expect(file.named(pair, id)).toBeDefined();
            }
          });
          // Messages signed with the old key are handled before it is removed.
          await some();
        }
        ended = true;
        await flow;
        await eventually(() => expect(new Set(handled)).toEqual(new Set(published)));
        expect(await forged('charges')).toBe(before);
        expect(await store.deadLetters('charges' satisfies Topic, 'billing')).toEqual([]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
}
