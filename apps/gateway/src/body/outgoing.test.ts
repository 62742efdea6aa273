import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BackendDialect, DEFAULT_PASSTHROUGH, DOCUMENTED_FIELDS, validatePassedThrough } from '@tollgate/contracts';
import { readRequest } from './inference-request';
import { upstreamBody } from './outgoing';
import { backend, CHAT, refused, RULES, sent, written } from './sent-bodies.fixture';
import { REQUEST_FIELDS } from './parse-body';

describe('the body for a backend', () => {
  it('is serialised from the validated members, each once: the last of duplicates counts', () => {
    const text =
      ' {"n":16,"stream":true,"n":1,"model":"expensive","messages":[{"role":"user","content":"long"}],' +
      '"messages":[{"role":"user","content":"\\u00e9","role":"user"}],' +
      '"stream":false,"mod\\u0065l":"public","temperature":1.0}';
    expect(written(text)).toBe(
      '{"max_tokens":9,"max_completion_tokens":9,"messages":[{"role":"user","content":"é"}],' +
        '"temperature":1,"n":1,"stream":false,"model":"inner"}',
    );
  });

  it('has U+FFFD for each half of a surrogate pair, which not every parser accepts', () => {
    const [half, halves, pair] = [String.raw`a\ud83d`, String.raw`\uDE00\uD83D`, String.raw`\ud83d\ude00`];
    // A backslash, and then the letters.
    const letters = String.raw`\\ud83d`;
    const text =
      `{"model":"public","messages":[{"role":"user","content":"${half}${letters}${halves}${letters}${pair}"}],` +
      `"grammar":"${half}"}`;
    expect(written(text)).toBe(
      '{"max_tokens":9,"max_completion_tokens":9,"messages":[{"role":"user","content":' +
        `"a\ufffd${letters}\ufffd\ufffd${letters}😀"}],"grammar":"a\ufffd","model":"inner"}`,
    );
  });

  it.each<[BackendDialect, object]>([
    ['any', { max_tokens: 9, max_completion_tokens: 9 }],
    ['openai', { max_completion_tokens: 9 }],
    ['vllm', { max_tokens: 9, max_completion_tokens: 9 }],
    ['llamacpp', { n_predict: 9, max_tokens: 9, max_completion_tokens: 9 }],
    ['ollama', { max_tokens: 9, max_completion_tokens: 9 }],
    ['sglang', { max_tokens: 9, max_completion_tokens: 9 }],
    ['tgi', { max_tokens: 9, max_completion_tokens: 9 }],
  ])('has the output limit under every name that %s reads, whichever name the client used', (dialect, caps) => {
    const asks = [CHAT, { ...CHAT, max_tokens: 50 }, { ...CHAT, max_completion_tokens: 50 }];
    for (const body of [...asks, { ...CHAT, max_tokens: 60, max_completion_tokens: 50 }]) {
      const { model, messages, ...rest } = sent(body, backend(dialect));
      expect({ model, messages, rest }).toEqual({ model: 'inner', messages: CHAT.messages, rest: caps });
    }
    const completion = readRequest(
      'completion',
      Buffer.from('{"model":"public","prompt":"x","best_of":1}'),
      () => RULES,
    );
    expect(JSON.parse(upstreamBody(completion, backend(dialect), 9).toString())).toMatchObject({ max_tokens: 9 });
  });

  it('asks for usage in every stream, and for no other stream option', () => {
    const options = { include_usage: false, include_obfuscation: true, continuous_usage_stats: true };
    expect(sent({ ...CHAT, stream: true, stream_options: options }).stream_options).toEqual({ include_usage: true });
    expect(sent({ ...CHAT, stream: true }).stream_options).toEqual({ include_usage: true });
    expect(sent(CHAT).stream_options).toBeUndefined();
    expect(refused({ ...CHAT, stream: true, stream_options: { include_everything: true } })).toEqual([
      'unsupported_parameter',
      'stream_options.include_everything',
      "'stream_options.include_everything' is not supported.",
    ]);
  });

  it('has the fields that the model passes on, for backends that know them, without nulls', () => {
    const body = { ...CHAT, top_k: 5, grammar: 'root ::= "a"', n_predict: null, seed: null };
    expect(sent(body)).toMatchObject({ top_k: 5, grammar: 'root ::= "a"' });
    expect(Object.keys(sent(body, backend('any', new Set(['top_k']))))).toEqual([
      'max_tokens',
      'max_completion_tokens',
      'messages',
      'top_k',
      'model',
    ]);
  });

  it('omits members of messages that are only for clients, and keeps the rest of an earlier answer', () => {
    const answer = { role: 'assistant', content: 'a', refusal: null, reasoning_content: 'why', tool_calls: null };
    const ours = { thinking: 'hm', reasoning_details: [{}], provider_specific_fields: {}, parsed: null, id: 'a' };
    const echoed = { ...answer, annotations: [{ url: 'x' }], audio: null, ...ours };
    expect(sent({ ...CHAT, messages: [echoed] }).messages).toEqual([answer]);
    const hint = { cache_control: { type: 'ephemeral' } };
    const parts = [{ type: 'text', text: 'x', ...hint }];
    const tool = { type: 'function', function: { name: 'f' } };
    expect(
      sent({ ...CHAT, messages: [{ role: 'user', content: parts }], tools: [{ ...tool, ...hint }] }),
    ).toMatchObject({
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
      tools: [tool],
    });
  });

  it('omits what clients and backends add to a call of a tool, whatever its value is', () => {
    const call = (inFunction: object, inCall: object = {}) => {
      const called = { name: 'f', arguments: '{"a":1}', ...inFunction };
      return {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: called, ...inCall }],
      };
    };
    const bare = written({ ...CHAT, messages: [call({})] });
    for (const value of [{ a: 1 }, null, 'text', 7, [{ a: [] }]]) {
      for (const name of ['parsed_arguments', 'description', 'provider_specific_fields'])
        expect(written({ ...CHAT, messages: [call({ [name]: value })] })).toBe(bare);
      for (const name of ['extra_content', 'provider_specific_fields'])
        expect(written({ ...CHAT, messages: [call({}, { [name]: value })] })).toBe(bare);
    }
  });

  it('omits fields that ask for the default behaviour', () => {
    const none = {
      store: false,
      service_tier: 'auto',
      modalities: ['text'],
      use_beam_search: false,
      ignore_eos: false,
    };
    expect(sent({ ...CHAT, ...none })).toEqual(sent(CHAT));
    for (const more of [{ store: true }, { service_tier: 'priority' }, { modalities: ['text', 'audio'] }])
      expect(refused({ ...CHAT, ...more })![0]).toBe('unsupported_parameter');
  });
});

describe('an unknown field', () => {
  it.each([
    [{ n_predict: 15_000 }, 'n_predict', 'it changes how much is generated. Use max_tokens.'],
    [{ n_cmpl: 2 }, 'n_cmpl', 'it changes how much is generated'],
    [{ best_of: 3 }, 'best_of', 'it changes how much is generated'],
    [{ use_beam_search: true }, 'use_beam_search', 'it changes how much is generated'],
    [{ options: { num_predict: 9_000 } }, 'options', 'it changes how much is generated'],
    [{ prompt_embeds: 'x' }, 'prompt_embeds', 'it changes what is counted'],
    [{ prompt_logprobs: 1 }, 'prompt_logprobs', 'it changes what is counted'],
    [{ system: 'x'.repeat(400) }, 'system', 'it changes what is counted'],
    [{ chat_template: '{{ messages }}' }, 'chat_template', 'it changes what is counted'],
    [{ kv_transfer_params: {} }, 'kv_transfer_params', 'it makes a backend fetch or store something'],
    [{ lora_request: {} }, 'lora_request', 'it changes which model runs'],
    [{ Model: 'expensive' }, 'Model', "Did you mean 'model'?"],
    [{ MAX_TOKENS: 9_000 }, 'MAX_TOKENS', "Did you mean 'max_tokens'?"],
    [{ maxTokens: 9_000 }, 'maxTokens', "Did you mean 'max_tokens'?"],
    [{ 'max_to\u212aens': 9_000 }, 'max_to\u212aens', "Did you mean 'max_tokens'?"],
    [{ 'me\u017f\u017fages': [] }, 'me\u017f\u017fages', "Did you mean 'messages'?"],
    [{ N_Predict: 1 }, 'N_Predict', "Did you mean 'n_predict'?"],
    [{ suffix: 'x' }, 'suffix', 'is not a field of this request'],
    [{ constructor: 1 }, 'constructor', 'is not supported by the model'],
    [{ 'a b': 1 }, 'a b', 'is not a field of this request'],
    [{ metadata: { a: 'x'.repeat(513) } }, 'metadata', 'at most 16 members'],
    [{ metadata: { a: { b: 'x' } } }, 'metadata', 'at most 16 members'],
    [{ frobnicate: 1 }, 'frobnicate', '"passthrough" list of the model in tollgate.yaml'],
    [{ chat_template_kwargs: { messages: 'x' } }, 'chat_template_kwargs.messages', 'is not supported'],
    [{ chat_template_kwargs: { chat_template: 'x' } }, 'chat_template_kwargs.chat_template', 'is not supported'],
    [{ chat_template_kwargs: { a: 'x'.repeat(65) } }, 'chat_template_kwargs.a', 'up to 64 characters'],
    [{ chat_template_kwargs: { a: ['x'] } }, 'chat_template_kwargs.a', 'true, false, a number, or a text'],
  ])('is refused by name, with a reason or a remedy: %j', (more, param, words) => {
    const text = JSON.stringify({ ...CHAT, ...more }).replaceAll('\\\\u', '\\u');
    const [code, at, message] = refused(text)!;
    expect([code, message]).toEqual([
      expect.stringMatching(/^(unsupported_parameter|invalid_value)$/),
      expect.stringContaining(words),
    ]);
    expect(at).toBe(JSON.parse(`"${param}"`));
  });

  it.each([
    [[{ role: 'user', content: 'x', Content: 'y' }], 'messages[0].Content'],
    [[{ role: 'user', content: [{ type: 'refusal', refusal: 'x', text: '' }] }], 'messages[0].content[0].text'],
    [
      [{ role: 'user', content: [{ type: 'text', text: 'x', prompt_embeds: 'y' }] }],
      'messages[0].content[0].prompt_embeds',
    ],
    [[{ role: 'user', content: 'x', images: ['y'] }], 'messages[0].images'],
    [
      [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ type: 'function', function: { name: 'f', arguments: '', Name: 'g' } }],
        },
      ],
      'messages[0].tool_calls[0].function.Name',
    ],
    [
      [{ role: 'assistant', content: null, tool_calls: [{ parsed_arguments: {}, function: { name: 'f' } }] }],
      'messages[0].tool_calls[0].parsed_arguments',
    ],
    [
      [{ role: 'assistant', content: null, function_call: { name: 'f', arguments: '', parsed_arguments: {} } }],
      'messages[0].function_call.parsed_arguments',
    ],
  ])('is refused in messages too: %j', (messages, param) => {
    expect(refused({ ...CHAT, messages })!.slice(0, 2)).toEqual(['unsupported_parameter', param]);
  });

  it('is documented if it is passed on by default', () => {
    const page = readFileSync(join(__dirname, '../../../../docs/forwarding.md'), 'utf8');
    for (const fields of Object.values(DEFAULT_PASSTHROUGH))
      for (const field of fields) expect(page).toContain(`\`${field}\``);
  });

  it('is distinguished by the list of documented fields in contracts, which matches the schemas', () => {
    const fields = Object.values(REQUEST_FIELDS).flatMap((schema) => Object.keys(schema));
    expect(new Set(fields)).toEqual(DOCUMENTED_FIELDS);
  });

  it('that must never be passed on is in no default list', () => {
    for (const fields of Object.values(DEFAULT_PASSTHROUGH))
      expect(fields.map(validatePassedThrough).filter(Boolean)).toEqual([]);
  });
});
