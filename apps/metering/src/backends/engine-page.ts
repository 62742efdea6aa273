/** Less than the slack of an hour's end (sampler.ts): a page that is read in time belongs to its moment. */
const PAGE_TIMEOUT_MS = 4_000;
/** A vLLM with many models has some hundred KiB. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;

/**
 * What an engine has counted since its start, over all models: adapters and aliases of one engine are not told apart
 * alike on both sides.
 */
export interface EngineReading {
  promptTokens: number;
  generationTokens: number;
  /** When its process began, where it says so. */
  startedMs: number | null;
  /** Prompt tokens that were cached are among those counted. */
  countsCached: boolean;
}

/**
 * Prompt and generation counter of each engine that we know. llama.cpp counts the prompt tokens that it processed,
 * without those that it had cached.
 */
const DIALECTS = [
  { prompt: 'vllm:prompt_tokens_total', generation: 'vllm:generation_tokens_total', countsCached: true },
  { prompt: 'sglang:prompt_tokens_total', generation: 'sglang:generation_tokens_total', countsCached: true },
  { prompt: 'llamacpp:prompt_tokens_total', generation: 'llamacpp:tokens_predicted_total', countsCached: false },
  { prompt: 'tgi_request_input_length_sum', generation: 'tgi_request_generated_tokens_sum', countsCached: true },
  { prompt: 'simulator_prompt_tokens_total', generation: 'simulator_generation_tokens_total', countsCached: true },
];
const STARTED = 'process_start_time_seconds';
const WANTED = new Set([STARTED, ...DIALECTS.flatMap(({ prompt, generation }) => [prompt, generation])]);

/**
 * Asks a metrics page. Rejects with the reason: no answer in time, another status than 200, too long, no counters that
 * we know.
 */
export async function readEngine(
  url: string,
  { timeoutMs = PAGE_TIMEOUT_MS, stopped }: { timeoutMs?: number; stopped?: AbortSignal } = {},
): Promise<EngineReading> {
  const late = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, {
    headers: { accept: 'text/plain; version=0.0.4' },
    redirect: 'error',
    signal: stopped ? AbortSignal.any([late, stopped]) : late,
  });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop cancels the body.
    if (bytes > MAX_PAGE_BYTES) throw new Error(`the page is longer than ${MAX_PAGE_BYTES} bytes`);
    chunks.push(chunk);
  }
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  return readPage(Buffer.concat(chunks).toString('utf8'));
}

/** Throws when the page has not both counters of an engine, or one that is no count. */
export function readPage(text: string): EngineReading {
  const sums = sumByName(text);
  const dialect = DIALECTS.find(({ prompt, generation }) => sums.has(prompt) && sums.has(generation));
  if (!dialect) throw new Error('the page has no token counters of an engine that is known');
  const started = sums.get(STARTED);
  return {
    promptTokens: count(sums.get(dialect.prompt)!),
    generationTokens: count(sums.get(dialect.generation)!),
    startedMs: started !== undefined && started > 0 ? Math.round(started * 1_000) : null,
    countsCached: dialect.countsCached,
  };
}

/**
 * The samples of Prometheus's text form that we want, summed over their labels: `name{label="…"} value [time]`. A
 * counter that is declared and has no sample yet is 0. By hand: the one parser on npm (parse-prometheus-text-format) is
 * not kept up, and builds an object for every line of a page of which we want five.
 */
function sumByName(text: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const declared = /^# TYPE (\S+) counter\s*$/.exec(line)?.[1];
    if (declared !== undefined && WANTED.has(declared) && !sums.has(declared)) sums.set(declared, 0);
    const name = /^[A-Za-z_:][\w:]*/.exec(line)?.[0];
    if (name === undefined || !WANTED.has(name)) continue;
    // Within quotes a label's value may have anything, closing braces too.
    const value = /^(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s+(\S+)/.exec(line.slice(name.length))?.[1];
    sums.set(name, (sums.get(name) ?? 0) + Number(value ?? NaN));
  }
  return sums;
}

function count(value: number): number {
  if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) throw new Error('a token counter is no count');
  return Math.round(value);
}
