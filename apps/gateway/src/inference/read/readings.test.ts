import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { type BackendDialect, DEFAULT_PASSTHROUGH, DIALECTS, NEVER_PASSED_ON } from '@tollgate/contracts';
import { countTokens } from '../../prompt/tokenizer';
import { InferenceError } from '../../inference-errors';
import { type InferenceRequest, readRequest } from '../../body/inference-request';
import { bodyRules } from '../../body/body-rules.fixture';
import { upstreamBody } from '../../body/outgoing';
import { cheapBound, countPrompt } from '../../prompt/prompt-bound';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? 20_261_122);
const CAP = 37;
const ALL_DIALECTS: BackendDialect[] = ['any', ...DIALECTS];

/** An object as written: its members in order, with duplicates. */
class Members {
  constructor(readonly list: readonly (readonly [string, Value])[]) {}
}
type Value = string | number | boolean | null | Value[] | Members;

/** Parses JSON and keeps duplicate members, unlike JSON.parse. */
function readJson(text: string): Value {
  let at = 0;
  const blank = () => {
    while (/\s/.test(text[at] ?? '')) at += 1;
  };
  const literal = (): string => {
    const found = /^(?:"(?:[^"\\]|\\.)*"|[^\s,:\]}]+)/s.exec(text.slice(at))![0];
    at += found.length;
    return found;
  };
  const many = (close: string, one: () => void): void => {
    at += 1;
    for (blank(); text[at] !== close; blank()) {
      one();
      blank();
      if (text[at] === ',') at += 1;
    }
    at += 1;
  };
  const value = (): Value => {
    blank();
    if (text[at] === '[') {
      const items: Value[] = [];
      many(']', () => items.push(value()));
      return items;
    }
    if (text[at] !== '{') return JSON.parse(literal()) as Value;
    const list: [string, Value][] = [];
    many('}', () => {
      const name = JSON.parse(literal()) as string;
      blank();
      at += 1;
      list.push([name, value()]);
    });
    return new Members(list);
  };
  return value();
}

/** How a parser finds a member. Undefined: there is none. */
type Find = (members: Members, name: string) => Value | undefined;
const goFold = (name: string) => name.replaceAll('\u017f', 's').replaceAll('\u212a', 'k').toLowerCase();
const PARSERS: Record<string, Find> = {
  'first wins': ({ list }, name) => list.find(([one]) => one === name)?.[1],
  'last wins': ({ list }, name) => list.findLast(([one]) => one === name)?.[1],
  'folds case, last wins': ({ list }, name) => list.findLast(([one]) => goFold(one) === goFold(name))?.[1],
  'folds case, first wins': ({ list }, name) => list.find(([one]) => goFold(one) === goFold(name))?.[1],
};

/** The fields in which each dialect reads the output limit. It must find one of them. */
const CAPS: Record<string, readonly string[]> = {
  any: ['max_tokens'],
  openai: ['max_completion_tokens'],
  vllm: ['max_completion_tokens', 'max_tokens'],
  llamacpp: ['n_predict', 'max_tokens', 'max_completion_tokens'],
  ollama: ['max_tokens'],
  sglang: ['max_completion_tokens', 'max_tokens'],
  tgi: ['max_tokens'],
};
const ALL_CAPS = ['max_tokens', 'max_completion_tokens', 'n_predict', 'max_new_tokens', 'num_predict', 'max_length'];
const ALL_CHOICES = ['n', 'n_cmpl', 'best_of', 'num_return_sequences', 'num_beams'];

/** All strings in a value, without member names: templates do not render those of messages. */
function texts(value: Value): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(texts);
  return value instanceof Members ? value.list.flatMap(([, inner]) => texts(inner)) : [];
}

function hasDuplicates(value: Value): boolean {
  if (Array.isArray(value)) return value.some(hasDuplicates);
  if (!(value instanceof Members)) return false;
  return (
    new Set(value.list.map(([name]) => goFold(name))).size < value.list.length ||
    value.list.some(([, inner]) => hasDuplicates(inner))
  );
}

const PERMITTED_URL = /^(data:video\/[a-z0-9]+;base64,[A-Z=]+|https:\/\/media\.example\.com\/a\?b)$/;

/** The values of all members of this name, however deep. */
function membersOf(value: Value, name: string, find: Find): Value[] {
  if (Array.isArray(value)) return value.flatMap((item) => membersOf(item, name, find));
  if (!(value instanceof Members)) return [];
  const own = find(value, name);
  return [...(own === undefined ? [] : [own]), ...value.list.flatMap(([, inner]) => membersOf(inner, name, find))];
}

/** What this reading of the body asks for beyond what is held. One `expect` for each would take most of the time. */
function beyondHeld(request: InferenceRequest, body: Members, dialect: BackendDialect, find: Find): string[] {
  const stop = find(body, 'stop');
  const isUnset = (name: string) => name === 'n_predict' || name === 'prompt' || find(body, name) === undefined;
  const isPermitted = (url: Value) => typeof url === 'string' && PERMITTED_URL.test(url);
  const isInline = (data: Value) => typeof data === 'string' && /^data:[a-z]+\/[a-z0-9]+;base64,[A-Z]+$/.test(data);
  // Each address is shorter than what the model holds for media.
  const prompt = texts(find(body, 'messages') ?? find(body, 'prompt')!);
  const bytes = texts(body).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const tokens = prompt.reduce((sum, text) => sum + countTokens(MODEL.tokenizer, text), 0);
  const rules: Record<string, boolean> = {
    'the model': find(body, 'model') === 'inner',
    'the kind of answer': (find(body, 'stream') ?? false) === request.stream,
    'a cap': CAPS[dialect]!.map((name) => find(body, name)).find((cap) => cap !== undefined) === CAP,
    'all caps': ALL_CAPS.every((name) => [undefined, CAP].includes(find(body, name) as number | undefined)),
    choices: ALL_CHOICES.every((name) => ((find(body, name) as number | undefined) ?? 1) <= request.choices),
    'fields that are never passed on': [...NEVER_PASSED_ON.keys()].every(isUnset),
    'stop sequences': (Array.isArray(stop) ? stop.length : 1) <= MODEL.maxStopSequences,
    'ids of files': membersOf(body, 'file_id', find).length === 0,
    addresses: membersOf(body, 'url', find).every(isPermitted),
    files: membersOf(body, 'file_data', find).every(isInline),
    'the cheap bound': cheapBound(request, MODEL) >= bytes,
    'the exact count': countPrompt(request, MODEL).most >= tokens,
  };
  return Object.keys(rules).filter((rule) => !rules[rule]);
}

const MODEL = bodyRules({
  id: 'public',
  mediaUrls: ['example.com'],
  passthrough: new Set(Object.values(DEFAULT_PASSTHROUGH).flat()),
});

const json = (arbitrary: fc.Arbitrary<unknown>) => arbitrary.map((value) => JSON.stringify(value));
const words = json(fc.oneof(fc.string({ unit: 'grapheme', maxLength: 30 }), fc.lorem({ maxCount: 8 })));
const count = json(fc.constantFrom(1, 2, 16, 9_000, null, '5', -1, 1e300));
const flag = fc.constantFrom('true', 'false', 'null');
/** A name in several forms: unchanged, escaped, in another case, with look-alike letters, in camel case. */
const written = (name: string) =>
  fc.oneof(
    { weight: 30, arbitrary: fc.constant(JSON.stringify(name)) },
    fc.constant(`"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`),
    fc.constant(JSON.stringify(name.toUpperCase())),
    fc.constant(JSON.stringify(name.replace('s', '\u017f').replace('k', '\u212a'))),
    fc.constant(JSON.stringify(name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()))),
  );
const member = (names: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc.tuple(names.chain(written), value).map(([name, text]) => `${name}:${text}`);
const object = (members: fc.Arbitrary<string[]>) => members.map((list) => `{${list.join()}}`);
const array = (items: fc.Arbitrary<string>) =>
  fc.array(items, { minLength: 1, maxLength: 3 }).map((list) => `[${list.join()}]`);
const shuffled = (always: fc.Arbitrary<string>[], sometimes: fc.Arbitrary<string>, most: number) =>
  fc
    .tuple(fc.tuple(...always), fc.array(sometimes, { maxLength: most }))
    .chain(([some, more]) => fc.shuffledSubarray([...some, ...more], { minLength: some.length + more.length }));

const odd = fc.oneof(
  member(fc.constantFrom(...NEVER_PASSED_ON.keys()), fc.oneof(count, words, flag)),
  member(fc.string({ minLength: 1, maxLength: 12 }), fc.oneof(words, json(fc.jsonValue()))),
);
const rarely = (usual: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 40, arbitrary: usual }, { weight: 1, arbitrary: odd });

const textPart = object(
  shuffled(
    [fc.constant('"type":"text"'), member(fc.constant('text'), words)],
    rarely(member(fc.constantFrom('text', 'type', 'refusal'), fc.oneof(words, fc.constant('"text"')))),
    1,
  ),
);
const address = json(
  fc.constantFrom(
    ...['data:video/mp4;base64,AAAA', 'data:video/jpeg;base64,AA==,BB==', 'data:application/pdf;base64,QUJD'],
    ...[
      'https://media.example.com/a?b#c',
      'https://10.0.0.1/a',
      'http://media.example.com/a',
      '/etc/passwd',
      'data:,x',
    ],
  ),
);
const mediaPart = (type: string, where: string, others: fc.Arbitrary<string>) =>
  object(
    shuffled(
      [
        fc.constant(`"type":"${type}"`),
        member(fc.constant(type), object(shuffled([member(fc.constant(where), address)], others, 2))),
      ],
      rarely(member(fc.constantFrom('type', 'text'), words)),
      1,
    ),
  );
const part = fc.oneof(
  { weight: 6, arbitrary: textPart },
  mediaPart('video_url', 'url', rarely(member(fc.constantFrom('url'), address))),
  mediaPart('file', 'file_data', rarely(member(fc.constantFrom('filename', 'file_data', 'file_id'), words))),
);
const content = fc.oneof(words, array(part));
const message = object(
  shuffled(
    [
      fc.constantFrom('"role":"user"', '"role":"system"', '"role":"assistant"'),
      member(fc.constant('content'), content),
    ],
    rarely(
      fc.oneof(
        member(fc.constant('content'), content),
        member(fc.constantFrom('name', 'refusal', 'reasoning_content', 'reasoning', 'tool_call_id'), words),
      ),
    ),
    2,
  ),
);
const messages = array(message);
const toolName = fc.constantFrom('f', 'server.tool', 'a..b', 'a/b');
const tool = fc
  .tuple(words, toolName)
  .map(
    ([text, name]) => `{"type":"function","function":{"name":"${name}","parameters":{"description":${text},"n":9}}}`,
  );
const field = fc.oneof(
  member(fc.constantFrom('model'), json(fc.constantFrom('public', 'expensive', 5))),
  member(fc.constant('messages'), messages),
  member(fc.constantFrom('max_tokens', 'max_completion_tokens', 'n', 'seed', 'top_k'), count),
  member(fc.constantFrom('stream', 'parallel_tool_calls', 'logprobs'), flag),
  member(fc.constantFrom('user', 'stop', 'regex', 'grammar'), words),
  member(fc.constant('tools'), array(tool)),
  member(fc.constant('stop'), json(fc.array(fc.string({ maxLength: 8 }), { maxLength: 18 }))),
  member(fc.constant('metadata'), json(fc.dictionary(fc.string(), fc.string()))),
  member(
    fc.constant('chat_template_kwargs'),
    json(fc.dictionary(fc.constantFrom('enable_thinking', 'thinking', 'messages'), fc.boolean())),
  ),
);
const chat = object(
  shuffled([fc.constant('"model":"public"'), messages.map((list) => `"messages":${list}`)], rarely(field), 6),
);

describe('the forwarded body', () => {
  it('asks no parser for another model, more output, more choices or a longer prompt than is held', async () => {
    let taken = 0;
    let refused = 0;
    await assertRuns(
      fc.property(chat, fc.constantFrom(...ALL_DIALECTS), (text, dialect) => {
        let request: InferenceRequest;
        try {
          request = readRequest('chat', Buffer.from(text), (id) => (id === MODEL.id ? MODEL : undefined));
        } catch (error) {
          expect(error).toBeInstanceOf(InferenceError);
          refused += 1;
          return;
        }
        taken += 1;
        const passthrough = new Set(DEFAULT_PASSTHROUGH[dialect]);
        const sent = upstreamBody(request, { model: 'inner', dialect, passthrough }, CAP).toString();
        const body = readJson(sent) as Members;
        // A strict parser accepts the body, and lenient ones read the same.
        expect(hasDuplicates(body)).toBe(false);
        expect(JSON.parse(sent)).toBeInstanceOf(Object);
        const beyond = Object.entries(PARSERS).flatMap(([how, find]) =>
          beyondHeld(request, body, dialect, find).map((rule) => `${rule}: ${how}`),
        );
        expect(beyond).toEqual([]);
      }),
      { seed: SEED, leastRuns: 1_500 },
    );
    // Otherwise the test would prove nothing.
    expect(taken).toBeGreaterThan(300);
    expect(refused).toBeGreaterThan(300);
  });
});
