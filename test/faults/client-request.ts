import { PRICE } from '../e2e/fixtures';

/** A client gives up after this time. */
const TIMEOUT_MS = 20_000;

export type Kind = 'plain' | 'stream' | 'embeddings';

/** The outcome of a request as its client saw it. Times are epoch milliseconds. */
export interface Outcome {
  tenantId: string;
  /** The key of the request. */
  keyId: string;
  kind: Kind;
  startedMs: number;
  endedMs: number;
  /** `req_…`, also of a refusal. Null if the client never received it. */
  requestId: string | null;
  /** The times of arrival of the output tokens. */
  arrivalsMs: number[];
  /** The requested output tokens. An answer has no more. */
  askedTokens: number;
  /**
   * The longest time in which the client received nothing: from its begin or received bytes to the next bytes, or to
   * the end.
   */
  silence: Silence;
  /** Null if the answer is complete. Else `503 overloaded`, `broken`, `event timeout_error`, … */
  failure: string | null;
  /** The cost of a complete answer, from its usage. */
  costNanos: number;
}

export interface Silence {
  fromMs: number;
  untilMs: number;
}

interface Parsed {
  id?: string;
  usage?: { prompt_tokens: number; completion_tokens?: number };
  error?: { code: string | null; type: string };
  choices?: { delta?: { content?: string } }[];
}

export interface Asked {
  tenantId: string;
  keyId: string;
  key: string;
  kind: Kind;
  /** The output tokens. */
  tokens: number;
  body: Record<string, unknown>;
}

/** Sends one request. Never rejects, because every failure is an outcome. */
export async function ask(inferenceUrl: string, asked: Asked): Promise<Outcome> {
  const { tenantId, keyId, key, kind, tokens, body } = asked;
  const nowMs = Date.now();
  const outcome: Outcome = {
    tenantId,
    keyId,
    kind,
    startedMs: nowMs,
    endedMs: 0,
    requestId: null,
    arrivalsMs: [],
    askedTokens: tokens,
    silence: { fromMs: nowMs, untilMs: nowMs },
    failure: null,
    costNanos: 0,
  };
  const heard = listener(outcome);
  try {
    const response = await fetch(`${inferenceUrl}/${kind === 'embeddings' ? 'embeddings' : 'chat/completions'}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    heard();
    outcome.requestId = response.headers.get('x-request-id');
    if (!response.ok) outcome.failure = `${response.status} ${codeOf(await response.text())}`;
    else if (kind === 'stream') await readStream(response, outcome, heard);
    else readAnswer(JSON.parse(await response.text()) as Parsed, outcome);
  } catch (error) {
    outcome.failure = (error as Error).name === 'TimeoutError' ? `silent for ${TIMEOUT_MS} ms` : 'broken';
  }
  outcome.endedMs = Date.now();
  heard();
  return outcome;
}

/** Called whenever bytes arrive. Keeps the longest silence between two calls. */
function listener(outcome: Outcome): () => void {
  let fromMs = outcome.startedMs;
  return () => {
    const untilMs = Date.now();
    const { silence } = outcome;
    if (untilMs - fromMs > silence.untilMs - silence.fromMs) outcome.silence = { fromMs, untilMs };
    fromMs = untilMs;
  };
}

async function readStream(response: Response, outcome: Outcome, heard: () => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  let last: Parsed = {};
  let done = false;
  for await (const bytes of response.body!) {
    heard();
    const events = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split('\n\n');
    rest = events.pop()!;
    for (const event of events) {
      if (!event.startsWith('data: ')) continue;
      if ((done = event === 'data: [DONE]')) continue;
      last = JSON.parse(event.slice('data: '.length)) as Parsed;
      if (last.id) outcome.requestId = requestIdOf(last.id);
      if (last.choices?.[0]?.delta?.content) outcome.arrivalsMs.push(Date.now());
    }
  }
  if (done) readAnswer(last, outcome);
  else outcome.failure = 'broken';
}

function readAnswer({ id, usage, error }: Parsed, outcome: Outcome): void {
  if (id) outcome.requestId = requestIdOf(id);
  if (error || !usage) outcome.failure = `event ${error?.code ?? error?.type}`;
  else if (outcome.kind === 'embeddings') outcome.costNanos = usage.prompt_tokens * PRICE.embedding;
  else outcome.costNanos = usage.prompt_tokens * PRICE.input + usage.completion_tokens! * PRICE.output;
}

const requestIdOf = (id: string) => id.replace('chatcmpl-', 'req_');

/** The code of an error. An error of another program, which is not in our envelope, is returned unchanged. */
function codeOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as Required<Parsed>;
    return error.code ?? error.type;
  } catch {
    return text.slice(0, 100);
  }
}
