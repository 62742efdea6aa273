import { eventually } from '@tollgate/testing';
import type { ServerResponse } from 'node:http';
import { countTokens } from '../../../apps/gateway/src/prompt/tokenizer';
import { useOwnBackend } from '../backends/own-backend';
import { useGateway } from '../use-gateway';

const CHUNK = 'Twelve words or so stand in every single chunk of this backend. ';
const PROMPT = 'Count me once, and not again. '.repeat(40);
const CHUNKS = 20;

/** A model that sends chunks of many tokens each, and then nothing. */
const open = new Set<ServerResponse>();
const yaml = useOwnBackend('packed', (request, response) => {
  request.resume();
  open.add(response.writeHead(200, { 'content-type': 'text/event-stream' }));
  for (let i = 0; i < CHUNKS; i += 1)
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: CHUNK } }] })}\n\n`);
});
const gateway = useGateway({ yaml });

describe('the record of a running stream', () => {
  it('has the number of delivered tokens, not of chunks, and the counted prompt', async () => {
    const caller = await gateway.caller();
    const messages = [{ role: 'user', content: PROMPT }];
    const answer = await gateway.post('/v1/chat/completions', { model: 'packed', messages, stream: true }, caller);
    const truth = countTokens('o200k_base', CHUNK.repeat(CHUNKS));
    expect(truth).toBeGreaterThan(CHUNKS * 10);
    await eventually(async () => {
      const [row] = await gateway.database.query<{
        delivered: { promptTokens: number; completionTokens: number; costNanos: string } | null;
      }>('SELECT delivered FROM admission.hold WHERE tenant_id = $1', [caller.tenantId]);
      const promptTokens = countTokens('o200k_base', 'user') + countTokens('o200k_base', PROMPT) + 6;
      const costNanos = String(promptTokens * 1_000 + truth * 2_000);
      expect(row!.delivered).toMatchObject({ promptTokens, completionTokens: truth, costNanos });
    });
    await answer.body!.cancel();
    expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ completionTokens: truth });
  });

  it('has at most the requested number of tokens, like its client, if the backend sends more', async () => {
    const caller = await gateway.caller();
    const body = { model: 'packed', messages: [{ role: 'user', content: PROMPT }], stream: true, max_tokens: 200 };
    const answer = await gateway.post('/v1/chat/completions', body, caller);
    const text = await answer.text();
    expect(countTokens('o200k_base', CHUNK.repeat(CHUNKS))).toBeGreaterThan(200);
    const content = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part).join('');
    expect(countTokens('o200k_base', content)).toBe(200);
    expect(text).toContain('"finish_reason":"length"');
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', estimated: true, completionTokens: 200, overrunNanos: '0' });
  });
});
