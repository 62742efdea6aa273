import { useGateway } from '../use-gateway';

// In its own file, because its short limits apply to every request of the gateway.
const gateway = useGateway({
  upstreamLimits: { plainHeadTimeoutMs: 300, streamHeadTimeoutMs: 300, idleTimeoutMs: 300 },
});

describe('a client of a backend that hangs', () => {
  it.each([false, true])('gets 504 within the time limit (stream: %s)', async (stream) => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const simulator = { faults: [{ kind: 'hang' }] };
    const body = { model: 'small', messages, max_tokens: 2, stream, simulator };
    const answer = await gateway.post('/v1/chat/completions', body, await gateway.caller());
    expect([answer.status, await answer.json()]).toEqual([
      504,
      { error: { message: expect.any(String), type: 'timeout_error', param: null, code: 'timeout_error' } },
    ]);
  });
});
