import { PRICE } from '../e2e/fixtures';

/** A client that waits longer has given up. */
const TIMEOUT_MS = 20_000;

/** What one request came to, as its client saw it. Times are epoch milliseconds. */
export interface Outcome {
  tenantId: string;
  stream: boolean;
  startedMs: number;
  endedMs: number;
  /** `req_…`, as soon as the client was told, of a refusal too; null: it never was. */
  requestId: string | null;
  /** Tokens of output that arrived, by their time of arrival. */
  arrivalsMs: number[];
  /** The longest time in which nothing came of it: from its beginning to the head, between two tokens, or until it was seen to be broken. */
  silenceMs: number;
  /** Null: it arrived whole. Else `503 overloaded`, `broken`, `event timeout_error`, … */
  failure: string | null;
  /** Of an answer that arrived whole, from the usage in it. */
  costNanos: number;
}

interface Parsed {
  id?: string;
  usage?: { prompt_tokens: number; completion_tokens: number };
  error?: { code: string | null; type: string };
  choices?: { delta?: { content?: string } }[];
}

export interface Asked {
  tenantId: string;
  key: string;
  body: Record<string, unknown> & { stream: boolean };
}

/** One chat. Never rejects: whatever happens is the outcome. */
export async function ask(inferenceUrl: string, { tenantId, key, body }: Asked): Promise<Outcome> {
  const outcome: Outcome = {
    tenantId,
    stream: body.stream,
    startedMs: Date.now(),
    endedMs: 0,
    requestId: null,
    arrivalsMs: [],
    silenceMs: 0,
    failure: null,
    costNanos: 0,
  };
  let heardMs = performance.now();
  const heard = () => {
    const nowMs = performance.now();
    outcome.silenceMs = Math.max(outcome.silenceMs, nowMs - heardMs);
    heardMs = nowMs;
  };
  try {
    const response = await fetch(`${inferenceUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim', ...body }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    heard();
    outcome.requestId = response.headers.get('x-request-id');
    if (!response.ok) outcome.failure = `${response.status} ${codeOf(await response.text())}`;
    else if (body.stream) await readStream(response, outcome, heard);
    else readAnswer(JSON.parse(await response.text()) as Parsed, outcome);
  } catch (error) {
    outcome.failure = (error as Error).name === 'TimeoutError' ? `silent for ${TIMEOUT_MS} ms` : 'broken';
  }
  heard();
  outcome.endedMs = Date.now();
  return outcome;
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
  else outcome.costNanos = usage.prompt_tokens * PRICE.input + usage.completion_tokens * PRICE.output;
}

const requestIdOf = (id: string) => id.replace('chatcmpl-', 'req_');

/** Not ours, when it is not in our envelope: that is shown as it is. */
function codeOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as Required<Parsed>;
    return error.code ?? error.type;
  } catch {
    return text.slice(0, 100);
  }
}
