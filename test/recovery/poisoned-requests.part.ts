import { newId, REQUEST_TOPICS } from '@tollgate/contracts';
import { KafkaMessages } from '@tollgate/messaging';
import { eventually } from '@tollgate/testing';
import type { Deployment, Replicas } from '../services/deployment';
import type { ServiceProcess } from '../services/service-process';
import { Deployed } from './deployed';
import { json, nested } from './poison';
import { PoisonSender } from './poison-sender';

/** Each request gets this time, and is not repeated. */
const PATIENT = { deadlineMs: 15_000 };
const TIMEOUT = { timeoutMs: 20_000, everyMs: 100 };
/** More than a topic of requests has partitions, so that each partition gets one. */
const ASKED = 12;

/** Poisoned requests and replies. Runs on one replica of each service but the gateway. */
export function poisonedRequestsTests(deployment: Deployment, services: Replicas): void {
  let deployed: Deployed;
  let messages: KafkaMessages | undefined;
  let sender: PoisonSender | undefined;

  beforeAll(async () => {
    deployed = new Deployed(deployment, services.gateway);
    sender = new PoisonSender(deployment);
    const connection = { brokers: deployment.kafka.brokers, clientId: 'test' };
    messages = new KafkaMessages({ connection, identity: deployment.identity });
    await messages.start();
  });
  afterAll(() => Promise.all([messages?.close(), sender?.close()]));

  describe('poisoned requests and replies', () => {
    it('are dropped and counted, and later requests are answered', async () => {
      const headers = (more: Record<string, string>) => ({
        'tollgate-request': newId('msg'),
        'tollgate-version': '1',
        'tollgate-reply-partition': '0',
        'tollgate-deadline': String(Date.now() + 60_000),
        'tollgate-asked': String(Date.now()),
        ...more,
      });
      const body = json({ subject: 'billing.summary', request: { tenantId: newId('ten') } });
      /** How many of the pieces are unreadable requests. All of them are unreadable replies. */
      const unreadableRequests = 9;
      const pieces: { headers: Record<string, string>; value: Buffer | null }[] = [
        { headers: {}, value: body },
        { headers: {}, value: null },
        { headers: headers({}), value: null },
        { headers: headers({}), value: Buffer.from('hello') },
        { headers: headers({}), value: Buffer.from([0xff, 0xfe, 0x00]) },
        { headers: headers({}), value: json({ subject: 'no.such', request: {} }) },
        { headers: headers({}), value: json({ subject: 'billing.summary' }) },
        {
          headers: headers({}),
          value: json({ subject: 'billing.credit.add', request: { tenantId: 7, amountCents: -1 } }),
        },
        { headers: headers({}), value: nested({ subject: 'billing.summary', request: 'DEEP' }) },
        { headers: headers({ 'tollgate-version': '999' }), value: body },
        { headers: headers({ 'tollgate-reply-partition': '99999' }), value: body },
        { headers: headers({ 'tollgate-reply-partition': '-1' }), value: body },
        { headers: headers({ 'tollgate-deadline': 'soon' }), value: body },
        { headers: headers({ 'tollgate-request': 'i'.repeat(100_000) }), value: body },
      ];
      for (const topic of ['requests.auth', 'requests.metering', 'requests.billing', 'replies'] as const) {
        const partitions = Array.from({ length: REQUEST_TOPICS[topic].partitions }, (_, partition) => partition);
        await sender!.send(
          topic,
          pieces.flatMap(({ headers, value }) =>
            partitions.map((partition) => ({
              ...{ key: null, partition, value },
              headers: {
                ...headers,
                ...('tollgate-request' in headers && { 'tollgate-partition': String(partition) }),
              },
            })),
          ),
        );
      }
      const counted = (topic: string, by: ServiceProcess, count: number) =>
        eventually(
          async () =>
            expect(await by.metrics()).toMatch(
              new RegExp(`^tollgate_requests_unreadable_total\\{topic="${topic}"\\} ${count}$`, 'm'),
            ),
          TIMEOUT,
        );
      for (const service of ['auth', 'metering', 'billing'] as const) {
        const { partitions } = REQUEST_TOPICS[`requests.${service}`];
        await counted(`requests.${service}`, services[service][0]!, unreadableRequests * partitions);
      }
      // A replica reads one partition.
      for (const gateway of services.gateway) await counted('replies', gateway, pieces.length);
      const tenant = await deployed.newTenant();
      const { id: tenantId } = tenant;
      const ask = messages!.request.bind(messages!);
      for (let n = 0; n < ASKED; n++) {
        expect(await ask('billing.summary', { tenantId }, PATIENT)).toMatchObject({ balanceCents: 1_000 });
        expect(await ask('metering.spent', { tenantId, month: '2026-10' }, PATIENT)).toMatchObject({ keys: [] });
        expect(await ask('auth.tenants.get', { tenantId }, PATIENT)).toMatchObject({ id: tenantId });
      }
    });
  });
}
