// What is asked. Every request is that of one tenant, 450 characters long, and answered with 100 tokens (streams: 500).
const PROMPT =
  'We are a small company, and we have a problem with the way in which we answer the letters of our customers. At ' +
  'the moment each letter is read by one of us, and the answer is often late. Please write a short plan for the new ' +
  'year. It should say what we can do at once, what will take more time, and who has to be told about it. Use plain ' +
  'words, as some of the people who will read the plan are new here and do not know all of our terms yet. Thank you.';
const messages = [{ role: 'user', content: PROMPT }];
export const PLAIN = { model: 'bench', messages, max_tokens: 100 };

/**
 * `unit`: what costs are told per. `not`: the gateway that it is not asked of.
 * @type {Record<string, { title: string, connections: number, body: object, unit: 'request' | 'chunk', not?: string }>}
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
    body: { ...PLAIN, model: 'bench-paced', max_tokens: 40, stream: true },
    unit: 'request',
  },
};

/** A stream that stays open: a token a second. */
export const OPEN_STREAM = { ...PLAIN, model: 'bench-slow', max_tokens: 1_000, stream: true };
