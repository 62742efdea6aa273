// The load: raw sockets, requests prepared once, so that it costs little beside what it measures.
// Usage: load.mjs '{"url":…,"headers":{…},"body":{…},"connections":32,"seconds":5}' → one line of JSON. Besides:
//   ratePerSecond  requests, evenly spaced, however slow the answers are; by default each connection sends the next at
//                  once
//   urls           instead of `url`: several gateways, dealt out to the connections in turn
//   authorizations a list: each request is of a random one, in the place of the header
//   spreadMs       the connections begin evenly over this time; by default all at once
//   count          end after this many requests, if the time is not over before
//   cut            leave at the end, in the middle of answers; by default each is read to its end
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const {
  url,
  urls = [url],
  headers = {},
  authorizations = null,
  body,
  connections,
  seconds,
  ratePerSecond = null,
  spreadMs = 0,
  count = Infinity,
  cut = false,
} = JSON.parse(process.argv[2]);
const payload = JSON.stringify(body);
const requestWith = ({ pathname, host }, lines) =>
  Buffer.from(
    [
      `POST ${pathname} HTTP/1.1`,
      `host: ${host}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(payload)}`,
      ...Object.entries(lines).map(([name, value]) => `${name}: ${value}`),
      '',
      payload,
    ].join('\r\n'),
  );
const targets = urls.map((each) => {
  const target = new URL(each);
  const requests = authorizations?.map((authorization) => requestWith(target, { ...headers, authorization })) ?? [
    requestWith(target, headers),
  ];
  return { hostname: target.hostname, port: Number(target.port), requests };
});
const HEAD_END = Buffer.from('\r\n\r\n');
const EVENT = Buffer.from('data: ');
/** An event with output. The first event of a chat only says who speaks. */
const OUTPUT = /"(?:content|text)": ?"[^"]/;
const LAST_CHUNK = '0\r\n\r\n';
const RECONNECT_MS = 20;
const TIMELINE_MS = 100;
const ERROR_SHOWN_CHARS = 300;

const latencies = [];
const firstTokens = [];
/** Answers that ended in each tenth of a second. */
const timeline = [];
let sent = 0;
let chunks = 0;
let errors = 0;
let firstError = null;
const startedAt = Date.now();
const cpuBefore = process.cpuUsage();
const started = performance.now();
const until = started + seconds * 1000;
let endedAt = started;
const isOver = () => sent >= count || performance.now() >= until;
// With a rate, each connection sends at its own even pace, and latency counts from the time at which it should have
// sent.
const paceMs = ratePerSecond === null ? 0 : (1000 * connections) / ratePerSecond;

function fail(what) {
  errors++;
  firstError ??= String(what).slice(0, ERROR_SHOWN_CHARS);
}

function client(index, due, finished) {
  const { hostname, port, requests } = targets[index % targets.length];
  const socket = connect(port, hostname);
  socket.setNoDelay(true);
  let sentAt = 0;
  let head = null;
  let good = false;
  let rest = 0;
  let chunked = false;
  let firstAt = 0;
  let tail = '';
  let pending = Buffer.alloc(0);
  const send = () => {
    if (isOver()) return socket.destroy();
    sent++;
    sentAt = paceMs ? due : performance.now();
    head = null;
    firstAt = 0;
    tail = '';
    socket.write(requests.length === 1 ? requests[0] : requests[Math.floor(Math.random() * requests.length)]);
  };
  const next = () => {
    if (!paceMs) return send();
    due += paceMs;
    setTimeout(send, Math.max(0, due - performance.now()));
  };
  const done = () => {
    endedAt = performance.now();
    // A refusal is quick, and no answer.
    if (good) {
      latencies.push(endedAt - sentAt);
      if (firstAt) firstTokens.push(firstAt - sentAt);
      const tenth = Math.floor((endedAt - started) / TIMELINE_MS);
      timeline[tenth] = (timeline[tenth] ?? 0) + 1;
    }
    next();
  };
  socket.on('connect', () => (paceMs ? next() : send()));
  socket.on('data', (data) => {
    if (head === null) {
      pending = pending.length ? Buffer.concat([pending, data]) : data;
      const end = pending.indexOf(HEAD_END);
      if (end < 0) return;
      head = pending.toString('latin1', 0, end).toLowerCase();
      good = head.startsWith('http/1.1 200');
      if (!good) fail(pending);
      chunked = head.includes('transfer-encoding: chunked');
      rest = chunked ? 0 : Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
      data = pending.subarray(end + 4);
      pending = Buffer.alloc(0);
    }
    if (chunked) {
      const before = chunks;
      for (let at = data.indexOf(EVENT); at >= 0; at = data.indexOf(EVENT, at + 6)) chunks++;
      if (!firstAt && chunks > before && OUTPUT.test(data.toString('latin1'))) firstAt = performance.now();
      tail = (tail + data.toString('latin1', Math.max(0, data.length - 16))).slice(-16);
      if (tail.endsWith(LAST_CHUNK)) done();
    } else {
      rest -= data.length;
      if (rest <= 0) done();
    }
  });
  socket.on('error', fail);
  socket.on('close', () => {
    if (isOver()) return finished();
    if (sentAt > 0) fail('the connection was closed');
    setTimeout(() => client(index, due, finished), RECONNECT_MS);
  });
  if (cut) setTimeout(() => socket.destroy(), Math.max(0, until - performance.now()));
}

await Promise.all(
  Array.from({ length: connections }, async (_, index) => {
    if (spreadMs > 0) await delay((spreadMs * index) / connections);
    await new Promise((resolve) => client(index, started + (paceMs * index) / connections, resolve));
  }),
);
const elapsed = (Math.max(endedAt, cut ? until : endedAt) - started) / 1000;
const { user, system } = process.cpuUsage(cpuBefore);
console.log(
  JSON.stringify({
    startedAt,
    requests: latencies.length,
    errors,
    firstError,
    elapsed,
    perSecond: latencies.length / elapsed,
    chunks,
    chunksPerSecond: chunks / elapsed,
    latencyMs: quantiles(latencies),
    firstTokenMs: quantiles(firstTokens),
    timeline: Array.from(timeline, (count) => count ?? 0),
    ownCpuSeconds: (user + system) / 1e6,
  }),
);

function quantiles(values) {
  if (values.length === 0) return null;
  values.sort((a, b) => a - b);
  const at = (q) => Number(values[Math.min(values.length - 1, Math.floor(q * values.length))].toFixed(3));
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}
