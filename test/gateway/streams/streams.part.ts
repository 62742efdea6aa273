import { eventually, inForceAfterMs } from '@tollgate/testing';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { LOCKED_WITHIN_MS, lockOnceHeld } from './locked-stream';
import type { Caller, GatewayUnderTest } from '../use-gateway';

/** The pace of streams, and their holds. */
export function streamsTests(gateway: GatewayUnderTest): void {
  const messages = [{ role: 'user', content: 'Go on.' }];
  /** A hold is checked once a second. The rest is for a busy machine. */
  const MAX_LOST_MS = 2_500;

  /** A stream whose reader decides when to read. */
  function open(caller: Caller, fields: object, simulator: object): Promise<IncomingMessage> {
    const body = JSON.stringify({ model: 'long', messages, stream: true, ...fields, simulator });
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' };
      request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, agent: false }, resolve)
        .on('error', reject)
        .end(body);
    });
  }

  /** Counts the received bytes. `text` is all of them at the end. */
  function reading(answer: IncomingMessage) {
    const state = { bytes: 0, tokens: 0, ended: false, tail: '' };
    answer.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      state.bytes += chunk.length;
      state.tokens += text.split('"content":"').length - 1;
      state.tail = (state.tail + text).slice(-2_000);
    });
    answer.on('close', () => (state.ended = true));
    return state;
  }

  const settledTokens = async (caller: Caller) => (await gateway.events(caller.tenantId, 1))[0]!.completionTokens;

  describe('a stream', () => {
    it('runs at the pace of its client: the backend waits, and nothing is lost', async () => {
      const caller = await gateway.caller();
      gateway.simulator.reset();
      const total = 16 * 4_000;
      const answer = await open(caller, { n: 16, max_tokens: 4_000 }, { answerTokens: 4_000 });
      answer.pause();
      let before = -1;
      await eventually(
        () => {
          const { tokensWritten } = gateway.simulator.stats();
          const still = tokensWritten === before;
          before = tokensWritten;
          expect(still).toBe(true);
        },
        { everyMs: 200 },
      );
      expect(before).toBeLessThan(total);
      const read = reading(answer);
      answer.resume();
      await eventually(() => expect(read.ended).toBe(true), { timeoutMs: 20_000 });
      expect(read.tail).toContain(`"completion_tokens":${total}`);
      expect(read.tail.endsWith('data: [DONE]\n\n')).toBe(true);
      expect(await settledTokens(caller)).toBe(total);
    });

    it('stops at the end of its hold until the store answers the extension, then continues', async () => {
      const caller = await gateway.caller();
      const { locked, release } = await lockOnceHeld(gateway, caller);
      const asked = open(caller, {}, { answerTokens: 3_000, firstTokenDelayMs: LOCKED_WITHIN_MS });
      await locked;
      const read = reading(await asked);
      let before = -1;
      try {
        await eventually(() => expect(read.tokens).toBeGreaterThan(400));
        await eventually(
          () => {
            const still = read.tokens === before;
            before = read.tokens;
            expect(still).toBe(true);
          },
          { everyMs: 50 },
        );
      } finally {
        await release();
      }
      expect(before).toBeLessThanOrEqual(1_025);
      await eventually(() => expect(read.ended).toBe(true));
      expect(read.tail).toContain('"completion_tokens":3000');
      expect(await settledTokens(caller)).toBe(3_000);
    });

    it('whose hold has ended stops with an error within two seconds, and its backend is stopped', async () => {
      const caller = await gateway.caller();
      const read = reading(await open(caller, {}, { tokensPerSecond: 50, answerTokens: 4_000 }));
      await eventually(() => expect(read.tokens).toBeGreaterThan(3));
      const [row] = await gateway.database.query<{ id: string }>('SELECT id FROM admission.hold WHERE tenant_id = $1', [
        caller.tenantId,
      ]);
      await gateway.admission.void([{ id: row!.id, tenantId: caller.tenantId }]);
      expect(await inForceAfterMs(() => expect(read.ended).toBe(true))).toBeLessThan(MAX_LOST_MS);
      expect(read.tail).toMatch(
        /data: \{"error":\{"message":"[^"]+","type":"overloaded_error"[^\n]+\n\ndata: \[DONE\]\n\n$/,
      );
      await eventually(() => expect(gateway.simulator.stats().openNow).toBe(0));
      expect(await gateway.snapshot(caller.tenantId)).toMatchObject({ pendingNanos: 0n, settledNanos: 0n });
    });

    it('records its delivered tokens once a second, which are charged if its gateway dies', async () => {
      const caller = await gateway.caller();
      const answer = await open(caller, {}, { tokensPerSecond: 20, answerTokens: 4_000 });
      const read = reading(answer);
      await eventually(async () => {
        const [row] = await gateway.database.query<{
          delivered: { promptTokens: number; completionTokens: number; costNanos: string } | null;
        }>('SELECT delivered FROM admission.hold WHERE tenant_id = $1', [caller.tenantId]);
        const { promptTokens, completionTokens, costNanos } = row!.delivered!;
        expect(completionTokens).toBeGreaterThan(5);
        expect(completionTokens).toBeLessThanOrEqual(read.tokens);
        expect(costNanos).toBe(String(promptTokens * 1_000 + completionTokens * 2_000));
      });
      answer.destroy();
      await gateway.events(caller.tenantId, 1);
    });
  });
}
