// A steady load of plain and streamed chats, which counts every answer that is not as it should be, and remembers the
// id of every request whose answer was complete.
import { Agent, request } from 'node:http';

const REQUEST_TIMEOUT_MS = 120_000;
const PAUSE_MS = 50;
const ANSWERS_TIMEOUT_MS = 300_000;
const MAX_KEPT_FAILURES = 20;
const PLAIN = { max_tokens: 20 };
/** Streams that last longer than the replacement of a pod: 240 tokens in 12 s. */
const STREAM = { stream: true, max_tokens: 240, simulator: { answerTokens: 240, tokensPerSecond: 20 } };

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

export class Load {
  counts = { plain: 0, streams: 0, failed: 0, allowedFailures: 0 };
  /** The first failures, in words. */
  failures = [];
  /** Tollgate's ids of the requests whose answers were complete. */
  complete = [];
  startedMs = Date.now();
  #stopping = false;
  #withPlain = true;
  #running = [];
  #mayFail = null;
  #ask;

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {string} options.key
   * @param {string} options.model
   * @param {number} options.plain clients of each kind
   * @param {number} options.streams
   */
  constructor({ url, key, model, plain, streams }) {
    this.#ask = (body) => chat(url, key, { model, messages: [{ role: 'user', content: 'Hello' }], ...body });
    this.#add('plain', plain);
    this.#add('streams', streams);
  }

  /** Failures that match `pattern` are allowed from now on; null: none. */
  allow(pattern) {
    this.#mayFail = pattern;
  }

  /** Starts that many more clients of plain requests. */
  addPlain(count) {
    this.#add('plain', count);
  }

  /** Half of the clients keep their connections, as SDKs do. */
  #add(kind, count) {
    for (let i = 0; i < count; i++) this.#running.push(this.#client(kind, i % 2 === 0));
  }

  /** Ends the clients of plain requests. Streams go on. */
  stopPlain() {
    this.#withPlain = false;
  }

  /** Resolves after that many further complete answers. Rejects if they take too long. */
  async answers(count) {
    const wanted = this.complete.length + count;
    for (const end = Date.now() + ANSWERS_TIMEOUT_MS; this.complete.length < wanted; await pause())
      if (Date.now() > end) throw new Error(`${count} answers did not come within ${ANSWERS_TIMEOUT_MS / 1_000} s`);
  }

  /** Lets every request end, and resolves to the counts. */
  async stop() {
    this.#stopping = true;
    await Promise.all(this.#running);
    return { ...this.counts, failures: this.failures, complete: this.complete };
  }

  async #client(kind, keepAlive) {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    while (!this.#stopping && (kind !== 'plain' || this.#withPlain)) {
      try {
        this.complete.push(await this.#ask({ ...(kind === 'streams' ? STREAM : PLAIN), agent }));
        this.counts[kind]++;
      } catch (error) {
        if (this.#mayFail?.test(error.message)) {
          this.counts.allowedFailures++;
        } else {
          this.counts.failed++;
          if (this.failures.length < MAX_KEPT_FAILURES)
            this.failures.push(`${new Date().toISOString()} ${kind}, ${keepAlive ? 'kept' : 'new'}: ${error.message}`);
        }
      }
      await pause();
    }
    agent.destroy();
  }
}

/**
 * Resolves to Tollgate's id of the request. Rejects unless the answer is a 200 and whole: a stream with its last chunk,
 * its usage and its end mark.
 */
function chat(url, key, { agent, ...fields }) {
  const streamed = fields.stream === true;
  const body = JSON.stringify(streamed ? { ...fields, stream_options: { include_usage: true } } : fields);
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/v1/chat/completions`,
      {
        method: 'POST',
        agent,
        timeout: REQUEST_TIMEOUT_MS,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        response.on('error', reject);
        response.on('end', () => {
          const whole = streamed ? text.includes('"usage":{') && text.trimEnd().endsWith('data: [DONE]') : true;
          if (response.statusCode !== 200) reject(new Error(`${response.statusCode} ${text.slice(0, 200)}`));
          else if (!response.complete || !whole || /"error"/.test(text)) reject(new Error(`cut: ${text.slice(-200)}`));
          else resolve(response.headers['x-tollgate-request-id']);
        });
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`silent for ${REQUEST_TIMEOUT_MS} ms`)));
    sent.on('error', reject);
    sent.end(body);
  });
}
