import { elapsedMs, eventually } from '@tollgate/testing';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { stopOf } from '../../../apps/gateway/src';
import { useGateway } from '../use-gateway';

const gateway = useGateway();
const messages = [{ role: 'user', content: 'Go on.' }];
const SHORT_MS = 100;
const FLUSH_TIMEOUT_MS = 20_000;

describe('a stop', () => {
  it('ends requests that outlive the drain, settles the delivered tokens, and stops the backends', async () => {
    const caller = await gateway.caller();
    const other = await gateway.caller();
    const idle = await gateway.caller();
    const stalled = await gateway.caller();
    gateway.simulator.reset();
    const ask = (who: typeof caller, fields: object) =>
      gateway.post('/v1/chat/completions', { model: 'long', messages, ...fields }, who);
    const stream = await ask(caller, { stream: true, simulator: { tokensPerSecond: 50, answerTokens: 4_000 } });
    let text = '';
    const read = (async () => {
      for await (const bytes of stream.body!) text += Buffer.from(bytes).toString('utf8');
    })();
    const plain = ask(other, { simulator: { firstTokenDelayMs: 60_000 } });
    const waiting = ask(idle, { stream: true, simulator: { firstTokenDelayMs: 60_000 } });
    // The next two clients neither read nor continue to send. They must not delay the stop.
    const unread = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${stalled.key}`, 'content-type': 'application/json' };
      const body = { model: 'long', messages, stream: true, n: 16, simulator: { answerTokens: 4_000 } };
      request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, agent: false }, resolve)
        .on('error', reject)
        .end(JSON.stringify(body));
    });
    unread.pause().on('error', () => {});
    const slow = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    let slowAnswer = '';
    slow.on('data', (bytes) => (slowAnswer += bytes.toString())).on('error', () => {});
    slow.write(
      [
        'POST /v1/chat/completions HTTP/1.1',
        'Host: x',
        `Authorization: Bearer ${idle.key}`,
        'Content-Type: application/json',
        'Content-Length: 100\r\n\r\n{',
      ].join('\r\n'),
    );
    await eventually(() => expect(text.match(/"content":"/g)?.length).toBeGreaterThan(5));
    for (const { tenantId } of [caller, other, idle, stalled])
      await eventually(async () => expect((await gateway.snapshot(tenantId)).pendingHolds).toBe(1));
    await eventually(() => expect(gateway.simulator.stats().openNow).toBe(4));

    expect(await stopOf(gateway.app).drain(SHORT_MS)).toBe(false);
    expect((await ask(caller, {})).status).toBe(503);
    expect(await elapsedMs(() => stopOf(gateway.app).cutOff())).toBeLessThan(5_000);
    await read;
    const error = /data: \{"error":\{"message":"[^"]+","type":"overloaded_error","param":null,/.source;
    const end = /"code":"overloaded_error"\}\}\n\ndata: \[DONE\]\n\n$/.source;
    expect(text).toMatch(new RegExp(error + end));
    const answer = await plain;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.json()).toMatchObject({ error: { code: 'overloaded_error' } });
    expect((await waiting).status).toBe(503);
    await eventually(() => expect(slowAnswer).toMatch(/^HTTP\/1.1 503 /));
    await eventually(() => expect(gateway.simulator.stats().openNow).toBe(0));

    expect(await stopOf(gateway.app).flushUsage(FLUSH_TIMEOUT_MS)).toBe(true);
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'upstream_error', estimated: true });
    expect(event!.completionTokens).toBe(text.match(/"content":"[^"]/g)!.length);
    expect(await gateway.snapshot(caller.tenantId)).toMatchObject({ pendingHolds: 0 });
    expect(await gateway.snapshot(stalled.tenantId)).toMatchObject({ pendingHolds: 0, settledHolds: 1 });
    for (const { tenantId } of [other, idle])
      expect(await gateway.snapshot(tenantId)).toMatchObject({ pendingHolds: 0, settledNanos: 0n });

    expect(await elapsedMs(() => gateway.app.close())).toBeLessThan(3_000);
    // Unread bytes keep a closed connection, and with it this process.
    unread.destroy();
    slow.destroy();
  });
});
