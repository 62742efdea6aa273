import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { withoutEmptyUnknown } from '../../upstream/wire/output-text';
import { ChunkTranslator } from '../../upstream/wire/chunk-translator';
import { ERRORS, NO_ERRORS } from '../../upstream/wire/reported-error.fixture';
import { MAX_OBJECTS } from './json-members';
import { beginPlainResponse, endPlainResponse, readPlainResponse, toBytes } from './plain-response';

const SEED = 20_261_123;

describe('a plain answer', () => {
  it('has our identity and the backend’s content unchanged, even long numbers', () => {
    const choices = '"choices":[{"index":0,"message":{"content":"é"},"p":-0.00001234567890123456789}]';
    const source = `{"id":"theirs","model":"inner","choices":[],"system_fingerprint":"fp",${choices},"x":1}`;
    const response = readPlainResponse('chat', Buffer.from(source))!;
    const identity = { id: 'ours', object: 'chat.completion', createdSeconds: 7, model: 'public' };
    const begun = beginPlainResponse('chat', response, identity);
    const whole = `{"id":"ours","object":"chat.completion","created":7,"model":"public",${choices},"usage":`;
    // The longer usage does not fit into the room behind the bytes.
    for (const usage of [{ total_tokens: 1 }, { details: 'x'.repeat(100_000) }])
      for (const form of [begun, toBytes(begun)])
        expect(endPlainResponse(form, usage).toString()).toBe(`${whole}${JSON.stringify(usage)}}`);
  });

  it.each(['', '[]', 'null', '{}', '{"choices":[]}', '{"choices":[1]}', '{"choices":{}}', '<html>'])(
    'is rejected: %s',
    (text) => {
      expect(readPlainResponse('chat', Buffer.from(text))).toBeNull();
    },
  );

  it('has the usage of a chunk with the same report, whose optional members may be null', () => {
    const usage = {
      ...{ prompt_tokens: 7, completion_tokens: 3, total_tokens: null },
      ...{ prompt_tokens_details: { cached_tokens: null }, completion_tokens_details: null },
    };
    const counts = { promptTokens: 7, cachedTokens: 0, completionTokens: 3 };
    const choice = { index: 0, finish_reason: 'stop', message: { content: 'a' } };
    const plain = JSON.stringify({ choices: [choice], usage });
    expect(readPlainResponse('chat', Buffer.from(plain))?.usage).toEqual(counts);
    for (const choices of [[], [{ ...choice, delta: {} }]]) {
      const object = 'chat.completion.chunk';
      const translator = new ChunkTranslator({ id: '', object, createdSeconds: 7, model: 'm', includeUsage: true }, 1);
      translator.push(`data: ${JSON.stringify({ choices, usage })}\n\n`);
      expect(translator.next()).toMatchObject({ usage: counts });
    }
  });

  it('is rejected if it reports an error, also beside content', () => {
    const read = (error: unknown) =>
      readPlainResponse('chat', Buffer.from(JSON.stringify({ choices: [{ message: { content: 'a' } }], error })));
    for (const error of ERRORS) expect(read(error)).toBeNull();
    for (const error of NO_ERRORS) expect(read(error)).not.toBeNull();
  });

  it('may begin with a byte order mark, which is not passed on', () => {
    const choices = '[{"message":{"content":"é"}}]';
    const read = (text: string) => readPlainResponse('chat', Buffer.from(text));
    expect(read(`\ufeff{"choices":${choices}}`)).toEqual(read(`{"choices":${choices}}`));
    expect(read(`\ufeff{"choices":${choices}}`)!.contentJson).toBe(Buffer.from(choices).toString('latin1'));
    expect(read(`\ufeff\ufeff{"choices":${choices}}`)).toBeNull();
  });

  it('is the backend’s JSON only if all of it is counted, in any form of the JSON', async () => {
    const json = fc.jsonValue({ maxDepth: 4 });
    const name = fc.constantFrom('index', 'message', 'finish_reason', 'é', 'a"b', 'logprobs', '\\');
    const choice = fc.dictionary(name, json, { maxKeys: 4 });
    await assertRuns(
      fc.property(
        fc.array(choice, { minLength: 1, maxLength: 3 }),
        fc.constantFrom(0, 1, '\t', '\r\n '),
        fc.constantFrom('', '"index":0,', '"index":0,"index":1,', '"choices":[{"text":"not this"}],'),
        fc.boolean(),
        (choices, indent, more, inside) => {
          const written = JSON.stringify(choices, null, indent);
          const content = inside ? written.replace('{', `{${more}`).replace(',}', '}') : written;
          const source = `{${inside ? '' : more}"choices" : ${content} ,"id":"x"}`;
          let parsed: { choices: Record<string, unknown>[] };
          try {
            parsed = JSON.parse(source) as typeof parsed;
          } catch {
            return;
          }
          const response = readPlainResponse('chat', Buffer.from(source))!;
          const sent = Buffer.from(response.contentJson, 'latin1').toString();
          // Nothing goes out that is not in the parsed content: no duplicate, and no member without output.
          expect(JSON.stringify(JSON.parse(sent))).toBe(JSON.stringify(response.content));
          const lean = parsed.choices.map(withoutEmptyUnknown);
          expect(response.content).toEqual(lean);
          const isWhole = JSON.stringify(lean) === JSON.stringify(parsed.choices);
          if (!isWhole) expect(sent).toBe(JSON.stringify(lean));
          if (isWhole && more === '') expect(sent).toBe(content);
        },
      ),
      { seed: SEED, leastRuns: 1_000 },
    );
  });

  it('is rejected unparsed if it has more objects than any honest answer', () => {
    const parse = jest.spyOn(JSON, 'parse');
    const many = Buffer.from(`{"choices":[${'{},'.repeat(MAX_OBJECTS)}{}]}`);
    expect(readPlainResponse('chat', many)).toBeNull();
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it('is rejected if it is nested more than 512 levels deep, and not if its text only looks like that', () => {
    const deep = (levels: number) => `{"choices":[{"x":${'['.repeat(levels)}1${']'.repeat(levels)}}]}`;
    expect(readPlainResponse('chat', Buffer.from(deep(510)))).toBeNull();
    expect(readPlainResponse('chat', Buffer.from(deep(509)))).not.toBeNull();
    expect(readPlainResponse('chat', Buffer.from('['.repeat(5_000_000)))).toBeNull();
    const text = JSON.stringify('[{"'.repeat(1_000));
    expect(readPlainResponse('chat', Buffer.from(`{"choices":[{"text":${text}}]}`))).not.toBeNull();
  });
});
