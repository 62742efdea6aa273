import { costNanos, type UsageEvent } from '@tollgate/contracts';
import { validateUsageEvent } from '../../../apps/metering/src/consume/read-usage-event';
import { type Caller, expectSettledAt, type GatewayUnderTest } from '../use-gateway';

/** Usage that a backend reports. `gateway` has answers of 200 tokens. */
export function reportedUsageTests(gateway: GatewayUnderTest): void {
  const messages = [{ role: 'user', content: 'Say something about gateways.' }];

  const chat = (caller: Caller, fields: object = {}, simulator: object = {}) =>
    gateway.post('/v1/chat/completions', { model: 'small', messages, simulator, ...fields }, caller);

  interface Answer {
    usage: { prompt_tokens: number; prompt_tokens_details?: object };
  }

  const expectSettled = (caller: Caller, nanos: bigint) => expectSettledAt(gateway, caller, nanos);
  const rated = (event: UsageEvent) => costNanos(event, event.price);

  describe('a backend', () => {
    it.each([true, false])(
      'that reports more than requested, if that can be true, causes an overrun of the operator (stream: %s)',
      async (stream) => {
        const caller = await gateway.caller();
        await (await chat(caller, { stream, max_tokens: 100 }, { faults: [{ kind: 'overrun', factor: 1.8 }] })).text();
        const [event] = await gateway.events(caller.tenantId, 1);
        expect(event).toMatchObject({ completionTokens: 180, estimated: false });
        expect(BigInt(event!.overrunNanos)).toBeGreaterThan(0n);
        expect(BigInt(event!.costNanos) + BigInt(event!.overrunNanos)).toBe(rated(event!));
        await expectSettled(caller, BigInt(event!.costNanos));
      },
    );

    it.each([
      ['a plain answer, too much to record', false, 10 ** 8],
      ['a stream, too much to record', true, 10 ** 8],
      ['a plain answer, too much for admission', false, 10 ** 9],
      ['a stream, too much for admission', true, 10 ** 9],
    ])('that reports impossible usage (%s) is counted by the gateway, and marked', async (_, stream, factor) => {
      const caller = await gateway.caller();
      const answer = await chat(caller, { stream, max_tokens: 200 }, { faults: [{ kind: 'overrun', factor }] });
      expect(await answer.text()).toContain('"completion_tokens":200');
      const [event] = await gateway.events(caller.tenantId, 1);
      expect(event).toMatchObject({ outcome: 'complete', estimated: true, completionTokens: 200, overrunNanos: '0' });
      expect(validateUsageEvent(event)).toBeNull();
      await expectSettled(caller, rated(event!));
    });

    it('that reports cached tokens is charged at their price', async () => {
      const caller = await gateway.caller();
      const { usage } = (await (await chat(caller, { max_tokens: 1 }, { cachedTokens: 4 })).json()) as Answer;
      expect(usage.prompt_tokens_details).toEqual({ cached_tokens: 4, audio_tokens: 0 });
      await expectSettled(caller, BigInt((usage.prompt_tokens - 4) * 1_000 + 4 * 500 + 2_000));
    });
  });
}
