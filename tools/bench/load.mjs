// The load generator. Uses raw sockets and prepares requests once, so that it costs little compared with the gateways.
// Prints one line of JSON. Usage:
//   load.mjs '{"url":…,"headers":{…},"body":{…},"connections":32,"seconds":5,"ratePerSecond":null}'
import { connect } from 'node:net';

const { url, headers = {}, body, connections, seconds, ratePerSecond = null } = JSON.parse(process.argv[2]);
const { hostname, port, pathname, host } = new URL(url);
const payload = JSON.stringify(body);
const request = Buffer.from(
  [
    `POST ${pathname} HTTP/1.1`,
    `host: ${host}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(payload)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    payload,
  ].join('\r\n'),
);
const HEAD_END = Buffer.from('\r\n\r\n');
const EVENT = Buffer.from('data: ');
const LAST_CHUNK = '0\r\n\r\n';

const latencies = [];
const firstTokens = [];
let chunks = 0;
let errors = 0;
const started = performance.now();
const until = started + seconds * 1000;
// With a rate, each connection sends at an even pace, and latency counts from the scheduled time of sending.
const paceMs = ratePerSecond === null ? 0 : (1000 * connections) / ratePerSecond;

function client(index) {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.setNoDelay(true);
    let due = started + (paceMs * index) / connections;
    let sentAt = 0;
    let head = null;
    let rest = 0;
    let chunked = false;
    let firstAt = 0;
    let tail = '';
    let pending = Buffer.alloc(0);
    const send = () => {
      if (performance.now() >= until) return socket.destroy();
      sentAt = paceMs ? due : performance.now();
      head = null;
      firstAt = 0;
      tail = '';
      socket.write(request);
    };
    const next = () => {
      if (!paceMs) return send();
      due += paceMs;
      setTimeout(send, Math.max(0, due - performance.now()));
    };
    const done = () => {
      latencies.push(performance.now() - sentAt);
      if (firstAt) firstTokens.push(firstAt - sentAt);
      next();
    };
    socket.on('connect', () => (paceMs ? next() : send()));
    socket.on('data', (data) => {
      if (head === null) {
        pending = pending.length ? Buffer.concat([pending, data]) : data;
        const end = pending.indexOf(HEAD_END);
        if (end < 0) return;
        head = pending.toString('latin1', 0, end).toLowerCase();
        if (!head.startsWith('http/1.1 200')) errors++;
        chunked = head.includes('transfer-encoding: chunked');
        rest = chunked ? 0 : Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
        data = pending.subarray(end + 4);
        pending = Buffer.alloc(0);
      }
      if (chunked) {
        const before = chunks;
        for (let at = data.indexOf(EVENT); at >= 0; at = data.indexOf(EVENT, at + 6)) chunks++;
        if (!firstAt && chunks > before) firstAt = performance.now();
        tail = (tail + data.toString('latin1', Math.max(0, data.length - 16))).slice(-16);
        if (tail.endsWith(LAST_CHUNK)) done();
      } else {
        rest -= data.length;
        if (rest <= 0) done();
      }
    });
    socket.on('error', () => errors++);
    socket.on('close', resolve);
  });
}

await Promise.all(Array.from({ length: connections }, (_, index) => client(index)));
const elapsed = (Math.min(performance.now(), until) - started) / 1000;
console.log(
  JSON.stringify({
    requests: latencies.length,
    errors,
    perSecond: latencies.length / elapsed,
    chunks,
    chunksPerSecond: chunks / elapsed,
    latencyMs: quantiles(latencies),
    firstTokenMs: quantiles(firstTokens),
  }),
);

function quantiles(values) {
  if (values.length === 0) return null;
  values.sort((a, b) => a - b);
  const at = (q) => Number(values[Math.min(values.length - 1, Math.floor(q * values.length))].toFixed(3));
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}
