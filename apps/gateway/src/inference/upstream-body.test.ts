import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { readAsk } from './ask';
import { membersOf } from './json-members';
import { readPlainResponse, writePlainResponse } from './plain-response';
import { upstreamBody } from './upstream-body';

const SEED = 20_261_123;
const latin1 = (json: string) => Buffer.from(json).toString('latin1');
const utf8 = (bytes: string) => Buffer.from(bytes, 'latin1').toString('utf8');
const CHAT = { model: 'public', messages: [{ role: 'user', content: 'x' }] };
const ask = (body: object | string) =>
  readAsk('chat', Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
const sent = (body: object | string) => JSON.parse(upstreamBody(ask(body), 'inner', 9).toString());

describe('the members of an object', () => {
  it('are those that JSON.parse finds, however the JSON is written', async () => {
    await assertRuns(
      fc.property(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()),
        fc.constantFrom(0, 1, 4, '\t', '\r\n '),
        (object, indent) => {
          const json = latin1(JSON.stringify(object, null, indent));
          const members = membersOf(json);
          const read = Object.fromEntries(
            members.map(({ name, valueStart, end }) => [name, JSON.parse(utf8(json.slice(valueStart, end)))]),
          );
          expect(read).toEqual(JSON.parse(JSON.stringify(object)));
          const again = `{${members.map(({ start, end }) => json.slice(start, end)).join(',')}}`;
          expect(JSON.parse(utf8(again))).toEqual(JSON.parse(JSON.stringify(object)));
        },
      ),
      { seed: SEED, leastRuns: 500 },
    );
  });

  it('may be of nothing, and of names that are escaped', () => {
    expect(membersOf(' { } ')).toEqual([]);
    expect(membersOf('{"mod\\u0065l" : "a\\"" , "b":[{"]":"}"}]}').map(({ name }) => name)).toEqual(['model', 'b']);
  });
});

describe('the body for a backend', () => {
  it('is the client’s byte by byte, but for what is ours', () => {
    const text =
      '{"seed":9007199254740993123,"model":"public","temperature":1.0,"messages":[{"role":"user","content":"é \\u00e9 \\"}"}],"max_tokens":5,"x":{"model":"kept","max_tokens":1e400}}';
    expect(upstreamBody(ask(text), 'inner', 5).toString()).toBe(
      '{"model":"inner","max_tokens":5,"seed":9007199254740993123,"temperature":1.0,"messages":[{"role":"user","content":"é \\u00e9 \\"}"}],"x":{"model":"kept","max_tokens":1e400}}',
    );
  });

  it('cannot be given another model or more output by a second member of the same name', () => {
    const twice =
      '{"max_tokens":5,"model":"public","messages":[{"role":"user","content":"x"}],"m\\u006fdel":"other","max_tokens":7,"max_completion_tokens":6}';
    const body = upstreamBody(ask(twice), 'inner', 6).toString();
    expect(body.match(/model/g)).toHaveLength(1);
    expect(JSON.parse(body)).toEqual({
      model: 'inner',
      max_completion_tokens: 6,
      messages: [{ role: 'user', content: 'x' }],
    });
  });

  it('asks for usage in every stream, beside what the client says there', () => {
    expect(sent({ ...CHAT, stream: true })).toMatchObject({ stream_options: { include_usage: true }, max_tokens: 9 });
    expect(sent({ ...CHAT, stream: true, stream_options: { include_usage: false, more: 1 } }).stream_options).toEqual({
      include_usage: true,
      more: 1,
    });
    expect(sent(CHAT).stream_options).toBeUndefined();
  });
});

describe('a plain answer', () => {
  it('has our identity and the backend’s words as they stand, numbers too', () => {
    const source =
      '{"id":"theirs","model":"inner","choices":[],"system_fingerprint":"fp","choices":[{"index":0,"message":{"content":"é"},"p":-0.00001234567890123456789}],"x":1}';
    const response = readPlainResponse('chat', Buffer.from(source))!;
    const out = writePlainResponse(
      'chat',
      response,
      { id: 'ours', object: 'chat.completion', createdSeconds: 7, model: 'public' },
      { total_tokens: 1 },
    );
    expect(out.toString()).toBe(
      '{"id":"ours","object":"chat.completion","created":7,"model":"public","choices":[{"index":0,"message":{"content":"é"},"p":-0.00001234567890123456789}],"usage":{"total_tokens":1}}',
    );
  });

  it.each(['', '[]', 'null', '{}', '{"choices":[]}', '{"choices":[1]}', '{"choices":{}}', '<html>'])(
    'is none: %s',
    (text) => {
      expect(readPlainResponse('chat', Buffer.from(text))).toBeNull();
    },
  );
});
