import { eventually, onceServed } from '@tollgate/testing';
import { OtlpReceiver } from '../monitoring/otlp-receiver';
import type { Replicas } from './deployment';
import { newTenant } from './first-steps';

/** Chosen at every percentage above 0, by its second half. */
const TRACE = '4bf92f3577b34da60000000000000001';
const PARENT_SPAN = '00f067aa0ba902b7';
const ARRIVAL_TIMEOUT_MS = 60_000;

/** A receiver of traces, and the setting that names it once the tests run. */
export function useTraces(): { env: Record<string, string>; receiver: () => OtlpReceiver } {
  const env: Record<string, string> = {};
  let receiver: OtlpReceiver;
  beforeAll(async () => {
    receiver = await OtlpReceiver.start();
    env['TOLLGATE_TRACES_URL'] = receiver.url;
  });
  afterAll(() => receiver.close());
  return { env, receiver: () => receiver };
}

export function tracesTests(receiver: () => OtlpReceiver, { gateway: gateways }: Replicas): void {
  it('one trace leads through gateway, metering and billing, over Kafka and to the posting', async () => {
    const gateway = gateways[0]!;
    const { key } = await newTenant(gateway);
    // Three cents or so, which are posted at once.
    const ask = () =>
      fetch(`${gateway.addresses.publicUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          traceparent: `00-${TRACE}-${PARENT_SPAN}-01`,
        },
        body: JSON.stringify({
          model: 'sim-large',
          messages: [{ role: 'user', content: 'Hello' }],
          max_tokens: 200,
          simulator: { answerTokens: 200 },
          stream: true,
        }),
      });
    const answer = await onceServed(ask);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('[DONE]')]);
    await eventually(
      () => {
        const spans = receiver().ofTrace(TRACE);
        // The last one, after those that were refused with 503.
        const request = spans.findLast(({ name }) => name === 'POST chat')!;
        expect(request.parentSpanId).toBe(PARENT_SPAN);
        const below = spans.filter(({ parentSpanId }) => parentSpanId === request.spanId);
        expect(below.map(({ service, name }) => `${service}: ${name}`)).toEqual(
          expect.arrayContaining([
            'tollgate-gateway: authenticate',
            'tollgate-gateway: read',
            'tollgate-gateway: admit',
            'tollgate-gateway: chat sim-large',
            'tollgate-gateway: settle',
            'tollgate-metering: process usage-events',
            'tollgate-billing: process charges',
            'tollgate-billing: post',
          ]),
        );
        const upstream = below.find(({ name }) => name === 'chat sim-large')!;
        expect(upstream.events.map(({ name }) => name)).toEqual(['first_token']);
      },
      { timeoutMs: ARRIVAL_TIMEOUT_MS },
    );
  });
}
