// What is asked. Every request is that of one tenant, 450 characters long, and answered with 100 tokens (streams: 500).
const PROMPT =
  'We are a small company, and we have a problem with the way in which we answer the letters of our customers. At ' +
  'the moment each letter is read by one of us, and the answer is often late. Please write a short plan for the new ' +
  'year. It should say what we can do at once, what will take more time, and who has to be told about it. Use plain ' +
  'words, as some of the people who will read the plan are new here and do not know all of our terms yet. Thank you.';
const messages = [{ role: 'user', content: PROMPT }];
export const PLAIN = { model: 'bench', messages, max_tokens: 100 };

/** The tokens of a paced answer. The backend sends the first event at once, and then one for each token. */
const PACED_TOKENS = 40;
const PACED_MS = ((PACED_TOKENS + 1) * 1_000) / 50;

/**
 * `unit`: what costs are told per. `not`: the gateway that it is not asked of. `spreadMs`: as in load.mjs.
 * @type {Record<string, { title: string, connections: number, body: object, unit: 'request' | 'chunk', not?: string,
 *   spreadMs?: number }>}
 */
export const SCENARIOS = {
  plain128: { title: 'plain, 128 connections', connections: 128, body: PLAIN, unit: 'request' },
  plain32: { title: 'plain, 32 connections', connections: 32, body: PLAIN, unit: 'request' },
  plain1: { title: 'plain, 1 connection', connections: 1, body: PLAIN, unit: 'request' },
  streams: {
    title: '32 streams flat out',
    connections: 32,
    body: { ...PLAIN, max_tokens: 500, stream: true },
    unit: 'chunk',
    // It would measure the load alone.
    not: 'direct',
  },
  paced: {
    title: '16 streams, 50 tokens/s',
    connections: 16,
    body: { ...PLAIN, model: 'bench-paced', max_tokens: PACED_TOKENS, stream: true },
    unit: 'request',
    // Streams of one length that begin together end together: all 16 requests would come at the same moment.
    spreadMs: PACED_MS,
  },
};

/** A stream that stays open: a token a second. */
export const OPEN_STREAM = { ...PLAIN, model: 'bench-slow', max_tokens: 1_000, stream: true };
