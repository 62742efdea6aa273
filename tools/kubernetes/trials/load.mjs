// A steady load of plain and streamed chats, which remembers what each client saw.
import { Agent, request } from 'node:http';

const REQUEST_TIMEOUT_MS = 120_000;
const PAUSE_MS = 50;
/** After a refusal, which costs its client nothing. */
const REFUSED_PAUSE_MS = 500;
const ANSWERS_TIMEOUT_MS = 300_000;
const MAX_KEPT_FAILURES = 20;
/** The most characters kept of a failed answer: more than an error of ours has. */
const MAX_KEPT_CHARS = 1_000;
/** The built-in model backend sends a token a chunk. Streams last longer than the replacement of a pod: 12 s. */
const ASKED = {
  plain: { max_tokens: 20 },
  streams: {
    ...{ stream: true, stream_options: { include_usage: true }, max_tokens: 240 },
    simulator: { answerTokens: 240, tokensPerSecond: 20 },
  },
};

/**
 * @typedef {object} Outcome of a request, as its client saw it
 * @property {'plain' | 'streams'} kind
 * @property {string | null} id Tollgate's id of the request, which comes before its answer. Null: it did not come
 * @property {string | null} failure null: the answer was complete
 * @property {{ prompt_tokens: number, completion_tokens: number } | null} usage of a complete answer
 * @property {number[]} arrivalsMs of the tokens of a stream that was cut
 * @property {number} askedTokens
 * @property {Fault | null} fault that lasted when the request ended
 *
 * @typedef {object} Fault
 * @property {RegExp} [mayFail] what clients may see. By default nothing may fail
 * @property {boolean} [touchesHolds] whether streams may lose what they have not recorded yet: it ends a gateway or
 * Redis
 * @property {number} sinceMs
 */

const pause = (ms = PAUSE_MS) => new Promise((resolve) => setTimeout(resolve, ms));

export class Load {
  /** @type {Outcome[]} in the order of their ends */
  outcomes = [];
  startedMs = Date.now();
  #complete = 0;
  /** Failures that were not allowed, in words. */
  #failures = [];
  #stopping = false;
  #withPlain = true;
  #running = [];
  /** @type {Fault | null} */
  #fault = null;
  #mayBeRefused;
  #ask;

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {string} options.key
   * @param {string} options.model
   * @param {number} options.plain clients of each kind
   * @param {number} options.streams
   * @param {RegExp} [options.mayBeRefused] failures that are always allowed
   */
  constructor({ url, key, model, plain, streams, mayBeRefused }) {
    this.#mayBeRefused = mayBeRefused;
    this.#ask = (kind, agent) =>
      chat(url, key, agent, { model, messages: [{ role: 'user', content: 'Hello' }], ...ASKED[kind] });
    this.#add('plain', plain);
    this.#add('streams', streams);
  }

  /** @param {Omit<Fault, 'sinceMs'> | null} fault that lasts from now on; null: none */
  suffer(fault) {
    this.#fault = fault && { ...fault, sinceMs: Date.now() };
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
    const wanted = this.#complete + count;
    for (const end = Date.now() + ANSWERS_TIMEOUT_MS; this.#complete < wanted; await pause())
      if (Date.now() > end) throw new Error(`${count} answers did not come within ${ANSWERS_TIMEOUT_MS / 1_000} s`);
  }

  /** Lets every request end, and resolves to the counts and to the first failures that were not allowed, in words. */
  async stop() {
    this.#stopping = true;
    await Promise.all(this.#running);
    const complete = (kind) => this.outcomes.filter((one) => one.kind === kind && one.failure === null).length;
    const failed = this.#failures.length;
    const allowedFailures = this.outcomes.length - this.#complete - failed;
    const counts = { plain: complete('plain'), streams: complete('streams'), failed, allowedFailures };
    return { counts, failures: this.#failures.slice(0, MAX_KEPT_FAILURES) };
  }

  async #client(kind, keepAlive) {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    while (!this.#stopping && (kind !== 'plain' || this.#withPlain)) {
      const seen = await this.#ask(kind, agent);
      const outcome = { ...seen, kind, fault: this.#fault };
      this.outcomes.push(outcome);
      const { failure } = outcome;
      const isRefused = failure !== null && (this.#mayBeRefused?.test(failure) ?? false);
      if (failure === null) {
        this.#complete++;
        outcome.arrivalsMs = [];
      } else if (!isRefused && !this.#fault?.mayFail?.test(failure)) {
        this.#failures.push(`${new Date().toISOString()} ${kind}, ${keepAlive ? 'kept' : 'new'}: ${failure}`);
      }
      await pause(isRefused ? REFUSED_PAUSE_MS : PAUSE_MS);
    }
    agent.destroy();
  }
}

/**
 * Never rejects: a failure is an outcome. An answer is complete if it is a 200 and whole: a stream with its usage and
 * its end mark.
 * @returns {Promise<Omit<Outcome, 'kind' | 'fault'>>}
 */
function chat(url, key, agent, fields) {
  const outcome = { id: null, usage: null, arrivalsMs: [], askedTokens: fields.max_tokens };
  const body = JSON.stringify(fields);
  return new Promise((resolve) => {
    const end = (failure) => resolve({ ...outcome, failure });
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const options = { method: 'POST', agent, timeout: REQUEST_TIMEOUT_MS, headers };
    const sent = request(`${url}/v1/chat/completions`, options, (response) => {
      outcome.id = response.headers['x-tollgate-request-id'] ?? null;
      let text = '';
      let unread = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
        const events = (unread + chunk).split('\n\n');
        unread = events.pop();
        if (fields.stream) for (const event of events) readEvent(event, outcome);
      });
      response.on('error', ({ message }) => end(message));
      response.on('end', () => {
        if (response.statusCode !== 200) return end(`${response.statusCode} ${text.slice(0, MAX_KEPT_CHARS)}`);
        const isWhole = response.complete && !/"error"/.test(text);
        if (!isWhole || (fields.stream && !text.endsWith('data: [DONE]\n\n')))
          return end(`cut: ${text.slice(-MAX_KEPT_CHARS)}`);
        if (!fields.stream) outcome.usage = JSON.parse(text).usage;
        end(outcome.usage === null ? `without usage: ${text.slice(-MAX_KEPT_CHARS)}` : null);
      });
    });
    sent.on('timeout', () => sent.destroy(new Error(`silent for ${REQUEST_TIMEOUT_MS} ms`)));
    sent.on('error', ({ message }) => end(message));
    sent.end(body);
  });
}

function readEvent(event, outcome) {
  if (!event.startsWith('data: {')) return;
  const { choices, usage } = JSON.parse(event.slice('data: '.length));
  if (choices?.[0]?.delta?.content) outcome.arrivalsMs.push(Date.now());
  outcome.usage = usage ?? outcome.usage;
}
