import { anyCharacter, assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { ChunkTranslator, type Frame } from './chunk-translator';
import { fromWire } from './json-text';
import { ERRORS, NO_ERRORS } from './reported-error.fixture';

const IDENTITY = {
  id: 'chatcmpl-ours',
  object: 'chat.completion.chunk' as const,
  createdSeconds: 7,
  model: 'public',
  includeUsage: false,
};
const SEED = 20_261_121;

interface Written {
  out: string;
  kinds: string[];
  texts: string[];
}

/** The whole output of the translator for a stream in these pieces. */
function translate(pieces: readonly Buffer[], identity = IDENTITY): Written {
  const translator = new ChunkTranslator(identity, 3);
  const bodies = new Map<number, string>();
  const written: Written = { out: '', kinds: [], texts: [] };
  const take = (frame: Frame) => {
    written.kinds.push(frame.kind);
    if (frame.kind !== 'content' && frame.kind !== 'finish') return;
    for (const { choice, text } of frame.pieces) bodies.set(choice, (bodies.get(choice) ?? '') + text);
    written.out += frame.kind === 'content' ? frame.out : translator.encode(frame.chunk);
  };
  for (const piece of pieces) {
    translator.push(piece.toString('latin1'));
    for (let frame = translator.next(); frame; frame = translator.next()) take(frame);
  }
  written.out = Buffer.from(written.out, 'latin1').toString('utf8');
  written.texts = [...bodies.values()].map((body) => fromWire(`"${body}"`) as string);
  return written;
}

function splitAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
}

function chunk(delta: object, more: object = {}, index = 0): object {
  return {
    id: 'chatcmpl-theirs',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'secret-model',
    system_fingerprint: 'fp_x',
    choices: [{ index, delta, logprobs: null, finish_reason: null, ...more }],
  };
}

/** The same JSON with a space after each colon and comma outside of strings, as Python writes it. */
function spaced(json: string): string {
  return json.replace(
    /("(?:[^"\\]|\\.)*")|([:,])/g,
    (_, text: string | undefined, sign: string | undefined) => text ?? `${sign} `,
  );
}

function escaped(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({ unit: anyCharacter, maxLength: 8 }).map((text) => Buffer.from(text).toString()),
  fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '","content":"',
    '\n\n',
    'data: [DONE]\n\n',
    '\r\n',
    'é',
    '😀',
    '"}}],"x":"',
    'content":"',
  ),
);
const anyStyle = fc.record({
  spaced: fc.boolean(),
  escaped: fc.boolean(),
  ending: fc.constantFrom('\n\n', '\r\n\r\n', '\r\r'),
  comment: fc.constantFrom('', ': ping\n\n', 'event: x\n'),
  choices: fc.integer({ min: 1, max: 3 }),
  field: fc.constantFrom('content', 'reasoning_content'),
});

describe('a translated stream', () => {
  it('neither passes on nor counts a message beside the delta', () => {
    const message = { role: 'assistant', content: 'all so far' };
    const chunks = [chunk({ content: 'a' }, { message }), chunk({ content: 'b' }, { message, finish_reason: 'stop' })];
    const bytes = Buffer.from(chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(''));
    const { out, texts } = translate([bytes]);
    expect(texts).toEqual(['ab']);
    expect(out).not.toContain('so far');
  });

  it('takes no chunk for another one that repeats its content as `text`', () => {
    const of = (text: string, content: string) => chunk({ content }, { text });
    const chunks = [of('a', 'a'), of('a', 'b'), of('b', 'b')];
    const bytes = Buffer.from(chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(''));
    expect(translate([bytes]).texts).toEqual(['a' + 'ba' + 'b']);
  });

  it('is complete and free of the backend’s identity, however its bytes are split', async () => {
    await assertRuns(
      fc.property(
        fc.array(anyText, { maxLength: 12 }),
        anyStyle,
        fc.array(fc.nat(), { maxLength: 40 }),
        (texts, style, cuts) => {
          const write = (value: object) => {
            let json = JSON.stringify(value);
            if (style.spaced) json = spaced(json);
            if (style.escaped) json = escaped(json);
            return `${style.comment}data: ${json}${style.ending}`;
          };
          const expected = Array.from({ length: style.choices }, () => '');
          let source = '';
          for (const [i, text] of texts.entries()) {
            source += write(chunk({ [style.field]: text }, {}, i % style.choices));
            expected[i % style.choices] += text;
          }
          source += `${write(chunk({}, { finish_reason: 'stop' }))}data: [DONE]${style.ending}`;
          const bytes = Buffer.from(source);
          const whole = translate([bytes]);
          expect(translate(splitAt(bytes, cuts))).toEqual(whole);
          expect(translate([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole);
          expect(whole.kinds.slice(-2)).toEqual(['finish', 'done']);
          // The client's view: every event is JSON with our identity, and the texts are those that were sent.
          const read = Array.from({ length: style.choices }, () => '');
          for (const event of whole.out.split('\n\n').slice(0, -1)) {
            const parsed = JSON.parse(event.slice('data: '.length));
            expect(Object.keys(parsed)).toEqual(['id', 'object', 'created', 'model', 'choices']);
            expect(parsed).toMatchObject({ id: 'chatcmpl-ours', created: 7, model: 'public' });
            for (const { index, delta } of parsed.choices) read[index] += delta[style.field] ?? '';
          }
          expect(read).toEqual(expected);
          expect(whole.texts.sort()).toEqual(expected.filter((text) => text !== '').sort());
        },
      ),
      { seed: SEED, leastRuns: 100, mostRuns: 300, timeBoxMs: 8_000 },
    );
  });

  it('is empty or our own JSON for random bytes', async () => {
    const junk = fc.array(
      fc.oneof(
        fc.constantFrom('data: ', '\n\n', '{', '}', '"choices":[', '{"delta":{"content":"', '"', ']', '[DONE]', '\r'),
        anyText,
      ),
      { maxLength: 30 },
    );
    await assertRuns(
      fc.property(junk, (parts) => {
        const { out } = translate([Buffer.from(parts.join(''))]);
        for (const event of out.split('\n\n').slice(0, -1))
          expect(JSON.parse(event.slice('data: '.length))).toMatchObject({ id: 'chatcmpl-ours' });
      }),
      { seed: SEED, leastRuns: 500 },
    );
  });
});

describe('the translation of a chunk', () => {
  const event = (value: object) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);

  it.each([
    ['a chunk cut off in the middle', Buffer.from('data: {"id":"x","choi\n\n')],
    ['an error of the backend', event({ error: { message: 'out of memory at 10.0.0.7' } })],
    ['a value that is not an object', Buffer.from('data: 5\n\n')],
  ])('breaks the stream at %s', (_, bytes) => expect(translate([bytes]).kinds).toEqual(['broken']));

  it.each(ERRORS)('breaks the stream at an error beside output: %j', (error) =>
    expect(translate([event({ ...chunk({ content: 'a' }), error })]).kinds).toEqual(['broken']),
  );

  it.each(NO_ERRORS)('goes on after a chunk that says that there is no error: %j', (error) => {
    const bytes = ['a', 'b', 'c'].map((content) => event({ ...chunk({ content }), error }));
    const { out, texts, kinds } = translate(bytes);
    expect([texts, kinds]).toEqual([['abc'], ['content', 'content', 'content']]);
    expect(out).not.toContain('error');
  });

  it.each([{}, { choices: null }, { choices: [] }])('reads usage without choices, and relays nothing: %j', (more) => {
    const translator = new ChunkTranslator(IDENTITY, 1);
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    translator.push(event({ id: 'theirs', usage, ...more }).toString('latin1'));
    translator.push(event({ id: 'theirs', ...more }).toString('latin1'));
    expect(translator.next()).toEqual({
      kind: 'usage',
      usage: { promptTokens: 3, completionTokens: 2, cachedTokens: 0 },
    });
    expect(translator.next()).toBeNull();
  });

  it('passes on tool calls and logprobs unchanged', () => {
    const call = {
      tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a"' } }],
    };
    const { out, texts } = translate([
      event(chunk({ content: 'a' })),
      event(chunk(call)),
      event(chunk({ content: 'b' }, { logprobs: { content: [] } })),
    ]);
    expect(out).toContain(JSON.stringify(call));
    expect(out).toContain('"logprobs":{"content":[]}');
    expect(texts).toEqual(['af{"a"b']);
  });

  it('drops empty members with unknown names and keeps the text beside them, parsed or by template', () => {
    const { out, texts, kinds } = translate(
      ['a', 'b', '', 'c'].map((content) => event(chunk({ content, 'a text': null }, { 'x y': [], token_ids: null }))),
    );
    expect(out).not.toMatch(/a text|x y/);
    expect(out.match(/"token_ids":null/g)).toHaveLength(4);
    expect([texts, kinds]).toEqual([['abc'], ['content', 'content', 'content', 'content']]);
  });

  it('leaves chunks of finish reasons and verdicts free, 64 times', () => {
    const translator = new ChunkTranslator(IDENTITY, 1);
    const tokens = (n: number) => {
      for (let i = 0; i < n; i += 1) translator.push(event(chunk({}, { stop_reason: 'END' })).toString('latin1'));
      let least = 0;
      for (let frame = translator.next(); frame; frame = translator.next())
        if (frame.kind === 'content') for (const piece of frame.pieces) least += piece.least;
      return least;
    };
    expect([tokens(64), tokens(10)]).toEqual([0, 10]);
  });

  it('adds usage: null to every chunk of a client that asked for usage, parsed or by template', () => {
    const { out } = translate(
      ['a', 'b', 'c'].map((content) => event(chunk({ content }))),
      { ...IDENTITY, includeUsage: true },
    );
    expect(out.match(/"usage":null/g)).toHaveLength(3);
  });

  it('breaks the stream at an event without end', () => {
    const translator = new ChunkTranslator(IDENTITY, 1);
    translator.push(`data: ${'x'.repeat(9 * 1024 * 1024)}`);
    expect(translator.next()).toMatchObject({ kind: 'broken' });
  });
});
