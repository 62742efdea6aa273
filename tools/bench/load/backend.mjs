// The model backend of the bench: prepared bytes over raw sockets. It costs a tenth of the gateways in front of it.
// (The simulator, which makes its answers, costs as much as a bare proxy.) Usage: backend.mjs [port]
// It answers `max_tokens` tokens. The model says how a stream is paced: see PACES.
import { createServer } from 'node:net';

/** Tokens a second of each model; 0 is as fast as they are read. */
const PACES = { bench: 0, 'bench-paced': 50, 'bench-slow': 1 };
const PROMPT_TOKENS = 100;
const DEFAULT_TOKENS = 100;
const SLAB_BYTES = 64 * 1_024;
const MAX_KNOWN_BODIES = 1_000;
const HEAD_END = Buffer.from('\r\n\r\n');
const NOT_FOUND = Buffer.from(
  'HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  'latin1',
);
const STREAM_HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n' +
    'transfer-encoding: chunked\r\n\r\n',
  'latin1',
);

const COMMON = { id: 'chatcmpl-bench', created: 1_790_000_000, model: 'bench', system_fingerprint: 'fp_bench' };
const usageOf = (tokens) => ({
  prompt_tokens: PROMPT_TOKENS,
  completion_tokens: tokens,
  total_tokens: PROMPT_TOKENS + tokens,
});

function plainAnswer(tokens) {
  const message = { role: 'assistant', content: ' tell'.repeat(tokens).slice(1), refusal: null };
  const body = JSON.stringify({
    ...COMMON,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: usageOf(tokens),
  });
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return Buffer.from(head + body, 'latin1');
}

/** The events of a stream, each a chunk of HTTP. */
function streamAnswer(tokens, withUsage) {
  const chunk = (text) => Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`, 'latin1');
  const event = (choices, usage = null) =>
    chunk(`data: ${JSON.stringify({ ...COMMON, object: 'chat.completion.chunk', choices, usage })}\n\n`);
  const choice = (delta, reason = null) => [{ index: 0, delta, logprobs: null, finish_reason: reason }];
  const token = event(choice({ content: ' tell' }));
  return [
    event(choice({ role: 'assistant', content: '', refusal: null })),
    ...Array.from({ length: tokens }, () => token),
    event(choice({}, 'stop')),
    ...(withUsage ? [event([], usageOf(tokens))] : []),
    Buffer.concat([chunk('data: [DONE]\n\n'), Buffer.from('0\r\n\r\n')]),
  ];
}

/** Events in as few writes as a fast backend needs. */
function slabsOf(events) {
  const perSlab = Math.max(1, Math.floor(SLAB_BYTES / events[1].length));
  return Array.from({ length: Math.ceil(events.length / perSlab) }, (_, i) =>
    Buffer.concat(events.slice(i * perSlab, (i + 1) * perSlab)),
  );
}

/** Answers by the text of the body: a load sends the same one again and again. */
const known = new Map();
function answerTo(text) {
  let answer = known.get(text);
  if (answer === undefined) {
    if (known.size >= MAX_KNOWN_BODIES) known.clear();
    known.set(text, (answer = makeAnswer(JSON.parse(text))));
  }
  return answer;
}

function makeAnswer({ model, stream, stream_options: options, max_tokens: max, max_completion_tokens: maxNew }) {
  const tokens = max ?? maxNew ?? DEFAULT_TOKENS;
  if (!stream) return { plain: plainAnswer(tokens) };
  const events = streamAnswer(tokens, options?.include_usage === true);
  const pace = PACES[model] ?? 0;
  return pace > 0 ? { events, intervalMs: 1_000 / pace } : { events: slabsOf(events), intervalMs: 0 };
}

function send(socket, { plain, events, intervalMs }, done) {
  if (plain) {
    socket.write(plain);
    return done();
  }
  socket.write(STREAM_HEAD);
  const began = performance.now();
  let at = 0;
  const run = () => {
    while (at < events.length && !socket.destroyed) {
      const waitMs = intervalMs > 0 ? began + at * intervalMs - performance.now() : 0;
      if (waitMs > 0) return void setTimeout(run, waitMs);
      if (!socket.write(events[at++]) && at < events.length) return void socket.once('drain', run);
    }
    done();
  };
  run();
}

const server = createServer({ noDelay: true }, (socket) => {
  let pending = null;
  let answering = false;
  const next = () => {
    while (pending !== null && !answering) {
      const end = pending.indexOf(HEAD_END);
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      const bodyAt = end + HEAD_END.length;
      const size = bodyAt + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (pending.length < size) return;
      const text = pending.toString('latin1', bodyAt, size);
      pending = pending.length > size ? pending.subarray(size) : null;
      if (!head.startsWith('POST ')) {
        socket.write(NOT_FOUND);
        continue;
      }
      answering = true;
      send(socket, answerTo(text), () => {
        answering = false;
        next();
      });
    }
  };
  socket.on('data', (data) => {
    pending = pending === null ? data : Buffer.concat([pending, data]);
    next();
  });
  socket.on('error', () => socket.destroy());
});
server.listen({ port: Number(process.argv[2] ?? 0), host: '127.0.0.1', backlog: 4_096 }, () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/v1` }));
});
