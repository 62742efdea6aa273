import { INFERENCE_ERRORS } from '../../../apps/gateway/src/inference-errors';
import type { Caller, GatewayUnderTest } from '../use-gateway';

/** Bodies that are refused, and those that are taken. */
export function bodiesTests(gateway: GatewayUnderTest): void {
  const messages = [{ role: 'user', content: 'Hello' }];
  const CHAT = { model: 'small', messages, max_tokens: 2 };
  /** About 5,000 of the 8,192 tokens of the context. */
  const NEAR = [{ role: 'user', content: 'word '.repeat(5_000) }];
  let caller: Caller;
  beforeAll(async () => {
    caller = await gateway.caller();
  });

  async function ask(body: unknown, path = '/v1/chat/completions') {
    const answer = await gateway.post(path, body, caller);
    return { status: answer.status, json: await answer.json() };
  }

  const refusal = (code: keyof typeof INFERENCE_ERRORS, param: string | null = null) => ({
    error: { message: expect.any(String), type: INFERENCE_ERRORS[code].type, param, code },
  });

  describe('an invalid body', () => {
    const message = (fields: object) => ({ ...CHAT, messages: [fields] });
    it.each([
      [{ messages }, 'missing_required_parameter', 'model'],
      [{ model: 'small' }, 'missing_required_parameter', 'messages'],
      [{ ...CHAT, model: 5 }, 'invalid_type', 'model'],
      [{ ...CHAT, model: '' }, 'invalid_value', 'model'],
      [{ ...CHAT, messages: 'hello' }, 'invalid_type', 'messages'],
      [{ ...CHAT, messages: [] }, 'invalid_value', 'messages'],
      [{ ...CHAT, messages: ['hello'] }, 'invalid_type', 'messages[0]'],
      [message({ content: 'x' }), 'missing_required_parameter', 'messages[0].role'],
      [message({ role: 'robot', content: 'x' }), 'invalid_value', 'messages[0].role'],
      [message({ role: 'user' }), 'missing_required_parameter', 'messages[0].content'],
      [message({ role: 'user', content: null }), 'invalid_type', 'messages[0].content'],
      [message({ role: 'user', content: 5 }), 'invalid_type', 'messages[0].content'],
      [message({ role: 'tool', content: '4' }), 'missing_required_parameter', 'messages[0].tool_call_id'],
      [{ ...CHAT, functions: { name: 'add' } }, 'invalid_type', 'functions'],
      [{ ...CHAT, top_logprobs: 2 }, 'invalid_value', 'top_logprobs'],
      [{ ...CHAT, logprobs: false, top_logprobs: 2 }, 'invalid_value', 'top_logprobs'],
      [message({ role: 'user', content: [{ type: 'smell' }] }), 'invalid_value', 'messages[0].content[0].type'],
      [
        message({ role: 'user', content: [{ type: 'text' }] }),
        'missing_required_parameter',
        'messages[0].content[0].text',
      ],
      [
        message({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x/y.png' } }] }),
        'unsupported_parameter',
        'messages[0].content[0]',
      ],
      [
        {
          ...message({ role: 'user', content: [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }] }),
          model: 'eyes',
        },
        'unsupported_parameter',
        'messages[0].content[0]',
      ],
      [{ ...CHAT, temperature: 2.1 }, 'invalid_value', 'temperature'],
      [{ ...CHAT, temperature: 'hot' }, 'invalid_type', 'temperature'],
      [{ ...CHAT, top_p: -0.1 }, 'invalid_value', 'top_p'],
      [{ ...CHAT, max_tokens: 0 }, 'invalid_value', 'max_tokens'],
      [{ ...CHAT, max_tokens: 1.5 }, 'invalid_type', 'max_tokens'],
      [{ ...CHAT, max_tokens: 5_000 }, 'invalid_value', 'max_tokens'],
      [{ ...CHAT, max_completion_tokens: -1 }, 'invalid_value', 'max_completion_tokens'],
      [{ ...CHAT, n: 17 }, 'invalid_value', 'n'],
      [{ ...CHAT, stop: ['a', 'b', 'c', 'd', 'e'] }, 'invalid_value', 'stop'],
      [{ ...CHAT, stop: [1] }, 'invalid_type', 'stop[0]'],
      [{ ...CHAT, stream: 'yes' }, 'invalid_type', 'stream'],
      [{ ...CHAT, stream_options: { include_usage: true } }, 'invalid_value', 'stream_options'],
      [{ ...CHAT, stream: true, stream_options: { include_usage: 1 } }, 'invalid_type', 'stream_options.include_usage'],
      [{ ...CHAT, frequency_penalty: -3 }, 'invalid_value', 'frequency_penalty'],
      [{ ...CHAT, presence_penalty: 3 }, 'invalid_value', 'presence_penalty'],
      [{ ...CHAT, seed: 'x' }, 'invalid_type', 'seed'],
      [{ ...CHAT, logit_bias: { 5: 'x' } }, 'invalid_type', 'logit_bias[5]'],
      [{ ...CHAT, tools: {} }, 'invalid_type', 'tools'],
      [{ ...CHAT, functions: 'add' }, 'invalid_type', 'functions'],
      [{ ...CHAT, functions: ['add'] }, 'invalid_type', 'functions[0]'],
      [{ ...CHAT, tools: [{}] }, 'missing_required_parameter', 'tools[0].type'],
      [{ ...CHAT, response_format: 'json' }, 'invalid_type', 'response_format'],
      [{ ...CHAT, user: 5 }, 'invalid_type', 'user'],
      [[], 'invalid_type', null],
      [null, 'invalid_type', null],
      [{ ...CHAT, model: 'embed' }, 'invalid_value', 'model'],
      [{ ...CHAT, chat_template: '{{ messages }}' }, 'unsupported_parameter', 'chat_template'],
      [{ ...CHAT, metadata: JSON.parse('['.repeat(300) + ']'.repeat(300)) }, 'invalid_value', 'metadata'],
      [{ ...CHAT, tool_choice: 'sometimes' }, 'invalid_value', 'tool_choice'],
      [{ ...CHAT, tool_choice: {} }, 'missing_required_parameter', 'tool_choice.type'],
      [{ ...CHAT, tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].function'],
      [
        { ...CHAT, tools: [{ type: 'function', function: { name: 'a b' } }] },
        'invalid_value',
        'tools[0].function.name',
      ],
      [{ ...CHAT, response_format: { type: 'xml' } }, 'invalid_value', 'response_format.type'],
      [
        { ...CHAT, response_format: { type: 'json_schema' } },
        'missing_required_parameter',
        'response_format.json_schema',
      ],
      [{ ...CHAT, logit_bias: { 50256: 101 } }, 'invalid_value', 'logit_bias[50256]'],
      [
        { ...CHAT, messages: [{ role: 'user', content: 'word '.repeat(9_000) }] },
        'context_length_exceeded',
        'messages',
      ],
      [{ ...CHAT, messages: [{ role: 'user', content: 'a'.repeat(300_000) }] }, 'context_length_exceeded', 'messages'],
      [{ ...CHAT, messages: NEAR, max_tokens: 4_000 }, 'context_length_exceeded', 'max_tokens'],
      [
        { model: 'small', messages: NEAR, max_completion_tokens: 4_000 },
        'context_length_exceeded',
        'max_completion_tokens',
      ],
    ] as const)('is refused with its code and parameter (%#)', async (body, code, param) => {
      const { status, json } = await ask(body);
      expect([status, json]).toEqual([400, refusal(code, param)]);
    });

    it.each([
      ['/v1/completions', { model: 'small' }, 'missing_required_parameter', 'prompt'],
      ['/v1/completions', { model: 'small', prompt: [] }, 'invalid_value', 'prompt'],
      ['/v1/completions', { model: 'small', prompt: ['a', 5] }, 'invalid_type', 'prompt'],
      ['/v1/completions', { model: 'small', prompt: 'a', n: 3, best_of: 4 }, 'unsupported_parameter', 'best_of'],
      ['/v1/completions', { model: 'small', prompt: 'a', echo: true }, 'unsupported_parameter', 'echo'],
      ['/v1/completions', { model: 'small', prompt: 'a', echo: 1 }, 'invalid_type', 'echo'],
      ['/v1/embeddings', { model: 'embed' }, 'missing_required_parameter', 'input'],
      ['/v1/embeddings', { model: 'embed', input: '' }, 'invalid_value', 'input'],
      ['/v1/embeddings', { model: 'embed', input: ['a', ''] }, 'invalid_value', 'input[1]'],
      ['/v1/embeddings', { model: 'embed', input: 'a', encoding_format: 'int8' }, 'invalid_value', 'encoding_format'],
      ['/v1/embeddings', { model: 'embed', input: 'a', dimensions: 0 }, 'invalid_value', 'dimensions'],
      ['/v1/embeddings', { model: 'embed', input: 'word '.repeat(300) }, 'context_length_exceeded', 'input'],
      ['/v1/embeddings', { model: 'small', input: 'a' }, 'invalid_value', 'model'],
    ] as const)('is refused with its code and parameter (%#: %s)', async (path, body, code, param) => {
      const { status, json } = await ask(body, path);
      expect([status, json]).toEqual([400, refusal(code, param)]);
    });

    it.each<[body: string | Buffer | object, message: string]>([
      ['', 'The body is empty. Send a JSON object.'],
      ['{', 'The body is not valid JSON.'],
      ['\uFEFF{}', 'The body begins with a byte order mark. Send JSON without one.'],
      [Buffer.from([0x22, 0xff, 0x22]), 'The body is not valid UTF-8.'],
      [{ ...CHAT, logit_bias: { hot: 1 } }, "'logit_bias' must not have a member 'hot': only token ids are allowed."],
    ])('gets an error that says what is wrong: %j', async (body, message) => {
      expect((await ask(body)).json).toMatchObject({ error: { message } });
    });

    it.each(['', '{', '{"model":', 'nonsense', Buffer.from([0x22, 0xff, 0x22])])(
      'that is not JSON is refused: %j',
      async (body) => {
        const { status, json } = await ask(body);
        expect([status, json]).toEqual([400, refusal('invalid_json')]);
      },
    );

    it('that asks for more output than the context has left is refused with both numbers; less is served', async () => {
      const who = await gateway.caller();
      const simulator = { answerTokens: 3 };
      const ask = async (max_tokens: number | undefined) =>
        gateway.post('/v1/chat/completions', { ...CHAT, messages: NEAR, max_tokens, simulator }, who);
      expect(JSON.stringify(await (await ask(4_000)).json())).toMatch(
        /context of 'small' is 8192 tokens; .* 5\d{3} and 'max_tokens' asks for 4000/,
      );
      for (const maxTokens of [undefined, 3_000]) expect((await ask(maxTokens)).status).toBe(200);
    });

    it('is never charged and leaves no hold', async () => {
      const { settledNanos, pendingHolds } = await gateway.snapshot(caller.tenantId);
      expect({ settledNanos, pendingHolds }).toEqual({ settledNanos: 0n, pendingHolds: 0 });
    });
  });
}
