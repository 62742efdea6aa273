// The worst known bodies for /v1/chat/completions, up to 10 MiB each, and a fuzzer that searches for worse ones. The
// caller supplies the score, for example how long the event loop was held.
//   import { BODIES, fuzz } from './worst-bodies.mjs';
//   for (const { name, body } of BODIES) await send(body());
//   const { name, score, body } = await fuzz(7, async (body) => heldMs(body), { rounds: 100 });
//   node tools/bench/worst-bodies.mjs     # prints names, sizes, and the time of parsing alone
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { makeText, random } from './slow-texts.mjs';

const MAX_BODY_BYTES = 10 * 1024 * 1024;
const MODEL = 'sim-small';
const SLOW_TEXTS = JSON.parse(readFileSync(new URL('slow-texts.json', import.meta.url), 'utf8'));

/** `open`, then `item(0)`, `item(1)` … with commas, then `close`. As many items as fit, at most `count`. */
function filled(open, item, close, { count = Infinity, bytes }) {
  const parts = [];
  let left = bytes - open.length - close.length;
  for (let i = 0; i < count; i++) {
    const next = (i > 0 ? ',' : '') + item(i);
    left -= Buffer.byteLength(next);
    if (left < 0) break;
    parts.push(next);
  }
  return open + parts.join('') + close;
}

/** A body with the model and these members. */
const withMembers = (members) => `{"model":"${MODEL}",${members}}`;
const HELLO = '"messages":[{"role":"user","content":"Hello"}]';
const repeated = (unit, bytes) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));
const nested = (open, inner, close, levels) => open.repeat(levels) + inner + close.repeat(levels);

/** The names of the bodies, each with a function that makes it, of at most `bytes` bytes. */
function shapesOf(bytes) {
  const room = bytes - 256;
  /** A body with one member that has many items. */
  const listed = (open, item, close, limits = {}) => {
    const messages = open.includes('"messages"') ? '' : `${HELLO},`;
    return filled(`{"model":"${MODEL}",${messages}${open}`, item, `${close}}`, { bytes, ...limits });
  };
  /** A body with one message. `json` is its content as a JSON string, with quotes. */
  const saying = (json) => withMembers(`"messages":[{"role":"user","content":${json}}]`);
  return [
    ['800,000 distinct names at the top', () => listed('', (i) => `"n${i}":0`, '', { count: 800_000 })],
    ['800,000 distinct names in metadata', () => listed('"metadata":{', (i) => `"${i.toString(36)}":0`, '}')],
    ['distinct numbers as names', () => listed('"logit_bias":{', (i) => `"${i}":1`, '}')],
    ['sparse numbers as names', () => listed('"logit_bias":{', (i) => `"${(i * 7_919) % 4_294_967_295}":1`, '}')],
    ['the same name again and again', () => listed('', () => '"n":1', '')],
    ['messages given twice a thousand times', () => listed('', () => `${HELLO}`, '', { count: 1_000 })],
    ['names in escapes', () => listed('', (i) => `"\\u006e${i}":0`, '')],
    [
      'names that differ in case',
      () =>
        listed(
          '',
          (i) => `"${[...'messages'].map((c, at) => ((i >> at) & 1 ? c.toUpperCase() : c)).join('')}${i >> 8}":0`,
          '',
        ),
    ],
    ['long names', () => listed('', (i) => `"${'n'.repeat(1_000)}${i}":0`, '')],
    ['arrays 5,000,000 levels deep', () => withMembers(`${HELLO},"metadata":${nested('[', '', ']', room / 2 - 64)}`)],
    [
      'objects a million levels deep',
      () => withMembers(`${HELLO},"metadata":${nested('{"a":', '0', '}', Math.min(1_000_000, Math.floor(room / 7)))}`),
    ],
    [
      'a schema 64 levels deep, again and again',
      () =>
        listed(
          '"tools":[',
          () =>
            `{"type":"function","function":{"name":"f","parameters":${nested('{"properties":{"a":', '{}', '}}', 30)}}}`,
          ']',
        ),
    ],
    ['a million messages', () => listed('"messages":[', () => '{"role":"user"}', ']', { count: 1_000_000 })],
    ['messages that say something', () => listed('"messages":[', (i) => `{"role":"user","content":"${i}"}`, ']')],
    [
      'messages of a wrong role, the last',
      () => listed('"messages":[', () => '{"role":"user","content":""}', ',{"role":"x"}]'),
    ],
    [
      'a million parts of a message',
      () =>
        listed('"messages":[{"role":"user","content":[', () => '{"type":"text","text":""}', ']}]', {
          count: 1_000_000,
        }),
    ],
    ['parts of no type', () => listed('"messages":[{"role":"user","content":[', () => '{}', ']}]')],
    [
      'images',
      () =>
        listed(
          '"messages":[{"role":"user","content":[',
          () => '{"type":"image_url","image_url":{"url":"data:,"}}',
          ']}]',
        ),
    ],
    [
      'a million tools',
      () => listed('"tools":[', (i) => `{"type":"function","function":{"name":"f${i}"}}`, ']', { count: 1_000_000 }),
    ],
    [
      'calls of tools',
      () =>
        listed(
          '"messages":[{"role":"assistant","tool_calls":[',
          (i) => `{"id":"${i}","type":"function","function":{"name":"f","arguments":"{}"}}`,
          ']}]',
        ),
    ],
    [
      'an enum of a million',
      () =>
        listed('"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":[', (i) => `"${i}"`, ']}}}]', {
          count: 1_000_000,
        }),
    ],
    [
      'properties of a tool',
      () =>
        listed(
          '"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{',
          (i) => `"p${i}":{}`,
          '}}}}]',
        ),
    ],
    [
      'numbers with exponents in a tool',
      () => listed('"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":[', () => '1e308', ']}}}]'),
    ],
    ['a number with a million digits', () => withMembers(`${HELLO},"seed":${'1'.repeat(Math.min(1_000_000, room))}`)],
    ['a fraction with millions of digits', () => withMembers(`${HELLO},"temperature":0.${'1'.repeat(room - 128)}`)],
    [
      'an exponent with a million digits',
      () => withMembers(`${HELLO},"temperature":1e-${'9'.repeat(Math.min(1_000_000, room - 64))}`),
    ],
    ['a million stop strings', () => listed('"stop":[', (i) => `"${i}"`, ']', { count: 1_000_000 })],
    ['empty arrays', () => listed('"metadata":[', () => '[]', ']')],
    ['empty objects', () => listed('"metadata":[', () => '{}', ']')],
    ['objects of a shape each', () => listed('"metadata":[', (i) => `{"${i.toString(36)}":0}`, ']')],
    ['nulls', () => listed('"metadata":[', () => 'null', ']')],
    ['numbers', () => listed('"metadata":[', () => '0.1e1', ']')],
    ['empty strings', () => listed('"metadata":[', () => '""', ']')],
    ['escapes', () => saying(`"${repeated('\\u0041', room)}"`)],
    ['escapes of lone surrogates', () => saying(`"${repeated('\\ud800', room)}"`)],
    ['short escapes', () => saying(`"${repeated('\\n\\"\\\\', room)}"`)],
    ['backslashes', () => saying(`"${repeated('\\\\', room)}"`)],
    ['a string without end', () => saying(`"${'a'.repeat(room)}`).slice(0, -2)],
    ['an array without end', () => listed('"messages":[', () => '{"role":"user","content":"a"}', '').slice(0, -1)],
    ['whitespace before', () => ' '.repeat(room) + withMembers(HELLO)],
    ['whitespace between', () => withMembers(`${HELLO}${'\n \t\r'.repeat(room / 4 - 32)}`)],
    ['whitespace after', () => withMembers(HELLO) + ' '.repeat(room)],
    ['bytes that are no UTF-8', () => Buffer.concat([Buffer.from(saying('"')), Buffer.alloc(room, 0xff)])],
    [
      'UTF-8 broken at the end',
      () => Buffer.concat([Buffer.from(saying(`"${'é'.repeat(room / 2 - 64)}`).slice(0, -3)), Buffer.from([0xc3])]),
    ],
    ['a byte order mark', () => `\ufeff${withMembers(HELLO)}`],
    ['no object', () => filled('[', () => '0', ']', { bytes })],
    // The texts that are slowest to tokenize, each as a message.
    ...SLOW_TEXTS.map(({ name, units, seed }) => [
      `text: ${name}`,
      () => {
        const sample = JSON.stringify(makeText({ units, seed }, 10_000));
        // With escapes the message is longer than the text.
        const chars = Math.floor((10_000 * room) / Buffer.byteLength(sample) / 1.05);
        return saying(JSON.stringify(makeText({ units, seed }, chars)));
      },
    ]),
  ];
}

/** Each with a function that makes the body, of 10 MiB by default. */
export const BODIES = shapesOf(MAX_BODY_BYTES).map(([name], i) => ({
  name,
  body: (bytes = MAX_BODY_BYTES) => Buffer.from(shapesOf(bytes)[i][1]()),
}));

const MUTATIONS = [
  ['cut', (json, next) => json.slice(0, Math.floor(json.length * next()))],
  ['a span twice', (json, next) => insert(json, next, span(json, next))],
  [
    'a span many times',
    (json, next) => insert(json, next, span(json, next, 64).repeat(1 + Math.floor(next() * 50_000))),
  ],
  ['a span taken out', (json, next) => json.replace(span(json, next), '')],
  [
    'another name each',
    (json, next) => json.replace(/"(\w{1,12})":/g, (_, name) => `"${name}${Math.floor(next() * 1e9).toString(36)}":`),
  ],
  ['a bracket', (json, next) => insert(json, next, '[{]}"\\,:'[Math.floor(next() * 8)])],
  ['a piece of another', (json, next, other) => insert(json, next, span(other, next))],
  ['brackets around', (json, next) => insert(json, next, '['.repeat(Math.floor(next() ** 2 * 100_000)))],
];

function span(json, next, most = 4_096) {
  const from = Math.floor(next() * json.length);
  return json.slice(from, from + 1 + Math.floor(next() * most));
}

function insert(json, next, what) {
  // After a comma, so that the result may be valid JSON.
  const comma = json.indexOf(',', Math.floor(next() * json.length));
  const at = comma === -1 ? json.length : comma + 1;
  return json.slice(0, at) + what + json.slice(at);
}

/**
 * Changes known bodies at random and keeps those with the highest score, to change them further. The same seed and
 * scores give the same result.
 * @param score rates a body (a Buffer of at most MAX_BODY_BYTES): higher is worse; may return a promise
 * @param bytes size of the first bodies: small ones are fast to score, and they grow
 * @returns the worst body; its name lists the mutations that made it
 */
export async function fuzz(seed, score, { rounds = 200, kept = 16, bytes = 256 * 1024, bodies = BODIES } = {}) {
  const next = random(seed);
  let worst = [];
  const keep = async (name, json) => {
    const body = Buffer.from(json, 'latin1').subarray(0, MAX_BODY_BYTES);
    worst.push({ name, body, score: await score(body) });
    worst = worst.sort((a, b) => b.score - a.score).slice(0, kept);
  };
  for (let round = 0; round < rounds; round++) {
    const fresh = worst.length < kept || next() < 0.3;
    const known = bodies[Math.floor(next() * bodies.length)];
    const other = known.body(bytes).toString('latin1');
    const parent = worst[Math.floor(next() * worst.length)];
    const json = fresh ? other : parent.body.toString('latin1');
    const [mutation, change] = MUTATIONS[Math.floor(next() * MUTATIONS.length)];
    await keep(`${fresh ? known.name : parent.name} + ${mutation}`, change(json, next, other).slice(0, MAX_BODY_BYTES));
  }
  return worst[0];
}

function main() {
  for (const { name, body } of BODIES) {
    const bytes = body();
    const from = process.cpuUsage();
    let outcome = 'JSON';
    try {
      JSON.parse(bytes.toString('utf8'));
    } catch (error) {
      outcome = error.name;
    }
    const { user, system } = process.cpuUsage(from);
    const ms = ((user + system) / 1_000).toFixed(0).padStart(6);
    console.log(`${ms} ms  ${(bytes.length / 1024).toFixed(0).padStart(6)} KiB  ${outcome.padEnd(12)} ${name}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
