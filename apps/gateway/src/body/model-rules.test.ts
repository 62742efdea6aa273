import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';
import type { BodyRules } from './rules';

const TOOL = { type: 'function', function: { name: 'f' } };
const SCHEMA = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } };

const read = (more: object, rules: Partial<BodyRules>) => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...more };
  return readRequest('chat', Buffer.from(JSON.stringify(body)), () => bodyRules(rules));
};

describe('a model that cannot use', () => {
  it.each<[string, object, Partial<BodyRules>, string, RegExp]>([
    ['tools', { tools: [TOOL] }, { tools: false }, 'tools', /'m' does not support tools/],
    ['tools', { functions: [{ name: 'f' }] }, { tools: false }, 'functions', /does not support tools/],
    [
      'a schema',
      { response_format: SCHEMA },
      { jsonSchema: false },
      'response_format',
      /does not support a JSON schema/,
    ],
  ])('%s refuses them with the reason', (_, more, rules, param, message) => {
    expect(() => read(more, rules)).toThrow(
      expect.objectContaining({
        status: 400,
        code: 'unsupported_parameter',
        param,
        message: expect.stringMatching(message) as string,
      }),
    );
    expect(read(more, {}).model).toBe('m');
  });

  it('tools or schemas takes requests that ask for neither', () => {
    const rules = { tools: false, jsonSchema: false };
    expect(read({ tools: [], response_format: { type: 'json_object' } }, rules).tools).toBe(0);
    expect(read({}, rules).affinity).toBeNull();
  });
});

describe('a model whose backends do not all take it', () => {
  const strict = { maxStopSequences: 4, dottedNames: false };
  const stops = (count: number) => ({ stop: Array.from({ length: count }, (_, i) => `end ${i}`) });
  const completion = (more: object, rules: Partial<BodyRules>) =>
    readRequest('completion', Buffer.from(JSON.stringify({ model: 'm', prompt: 'x', ...more })), () =>
      bodyRules(rules),
    );

  it('refuses more than 4 stop sequences, in chats and completions', () => {
    const refusal = expect.objectContaining({
      code: 'invalid_value',
      param: 'stop',
      message: "'stop' must have at most 4 items for the model 'm'.",
    }) as Error;
    for (const ask of [read, completion]) {
      expect(() => ask(stops(5), strict)).toThrow(refusal);
      expect(ask(stops(4), strict).model).toBe('m');
    }
  });

  it.each<[object, string]>([
    [{ tools: [TOOL, { type: 'function', function: { name: 'a.f' } }] }, 'tools[1].function.name'],
    [{ tools: [{ type: 'custom', custom: { name: 'a.f' } }] }, 'tools[0].custom.name'],
    [{ functions: [{ name: 'a.f' }] }, 'functions[0].name'],
    [{ tools: [TOOL], tool_choice: { type: 'function', function: { name: 'a.f' } } }, 'tool_choice.function.name'],
    [{ functions: [{ name: 'f' }], function_call: { name: 'a.f' } }, 'function_call.name'],
  ])('refuses a dot in a name: %j', (more, param) => {
    expect(() => read(more, strict)).toThrow(
      expect.objectContaining({
        code: 'invalid_value',
        param,
        message: `'${param}' must not contain a dot for the model 'm'.`,
      }),
    );
    expect(read(more, {}).outgoing.fields.toString()).toContain('"name":"a.f"');
  });

  it('has the greatest bounds otherwise: 16 stop sequences, and names of letters, digits and . _ -', () => {
    for (const ask of [read, completion]) {
      expect(ask(stops(16), {}).outgoing.fields.toString()).toContain('"end 15"');
      expect(() => ask(stops(17), {})).toThrow(expect.objectContaining({ code: 'invalid_value', param: 'stop' }));
    }
    for (const name of ['a/f', '', 'a'.repeat(65)])
      expect(() => read({ functions: [{ name }] }, {})).toThrow(
        expect.objectContaining({ param: 'functions[0].name' }),
      );
    const format = { type: 'json_schema', json_schema: { name: 'a.s', schema: {} } };
    expect(() => read({ response_format: format }, {})).toThrow(
      expect.objectContaining({ param: 'response_format.json_schema.name' }),
    );
  });
});

describe('a video or a file', () => {
  const VIDEO = { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } };
  const FILE = { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'x.pdf' } };
  const chat = (...content: object[]) => ({ messages: [{ role: 'user', content }] });

  it('is sent as it is if the model has a maximum for it', () => {
    const request = read(chat(VIDEO, VIDEO, FILE), { maxTokensPerVideo: 3_000, maxTokensPerFile: 50 });
    expect(JSON.parse(`{${request.outgoing.fields.toString().slice(0, -1)}}`)).toEqual(chat(VIDEO, VIDEO, FILE));
  });

  it.each<[string, object, Partial<BodyRules>, RegExp]>([
    ['videos', VIDEO, { maxTokensPerVideo: null }, /'m' does not accept videos/],
    ['files', FILE, { maxTokensPerFile: null }, /'m' does not accept files/],
  ])('is refused without a maximum: %s', (_, part, rules, message) => {
    expect(() => read(chat({ type: 'text', text: 'x' }, part), rules)).toThrow(
      expect.objectContaining({
        status: 400,
        code: 'unsupported_parameter',
        param: 'messages[0].content[1]',
        message: expect.stringMatching(message) as string,
      }),
    );
  });

  it.each<[object, string]>([
    [{ type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } }, 'video_url.url'],
    [{ type: 'video_url', video_url: { url: 'file:///etc/passwd' } }, 'video_url.url'],
    [{ type: 'video_url', video_url: { url: 'data:text/html,x' } }, 'video_url.url'],
    [{ type: 'video_url', video_url: { url: 'data:video/mp4;base64,http://x' } }, 'video_url.url'],
    [{ type: 'video_url', video_url: { url: 'data:video/jpeg;base64,AA==,BB==' } }, 'video_url.url'],
    [{ type: 'file', file: { file_data: 'https://example.com/a.pdf' } }, 'file.file_data'],
    [{ type: 'file', file: { file_data: '/etc/passwd' } }, 'file.file_data'],
    [{ type: 'file', file: { file_data: 'data:application/pdf,x' } }, 'file.file_data'],
    [{ type: 'file', file: { file_data: FILE.file.file_data, filename: 'x'.repeat(257) } }, 'file.filename'],
    [{ type: 'file', file: { file_data: FILE.file.file_data, file_id: 'file-1' } }, 'file.file_id'],
    [{ type: 'file', file: { file_id: 'file-1' } }, 'file.file_data'],
  ])('is never an address or a reference that the backend would fetch: %j', (part, param) => {
    expect(() => read(chat(part), { mediaUrls: false })).toThrow(
      expect.objectContaining({ status: 400, param: `messages[0].content[0].${param}` }),
    );
  });

  it('may be fetched from a domain that the model names, if it is a video', () => {
    const from = (url: string) => read(chat({ type: 'video_url', video_url: { url } }), { mediaUrls: ['example.com'] });
    expect(from('https://Cdn.Example.com/a.mp4#t').outgoing.fields.toString()).toContain(
      '"url":"https://cdn.example.com/a.mp4"',
    );
    expect(() => from('https://example.org/a.mp4')).toThrow(/is not on a domain/);
  });
});
