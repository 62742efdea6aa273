/**
 * Less than the slack at the end of an hour (sampler.ts), so the counters of a page belong to the time of its request.
 */
const PAGE_TIMEOUT_MS = 4_000;
/** A vLLM with many models has some hundred KiB. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;

/**
 * The engine's counters since its start, summed over all models, because adapters and aliases are not told apart alike
 * on both sides.
 */
export interface EngineReading {
  promptTokens: number;
  generationTokens: number;
  /** When its process started, if the page says so. */
  startedMs: number | null;
  /** Whether the counted prompt tokens include cached ones. */
  countsCached: boolean;
}

/**
 * The prompt and generation counters of each known engine. llama.cpp counts only processed prompt tokens, not cached
 * ones.
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
 * Reads a metrics page. Rejects with the reason: no answer in time, a status other than 200, too long, no known
 * counters.
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

/** Throws if the page lacks one of an engine's two counters, or has an invalid one. */
export function readPage(text: string): EngineReading {
  const sums = sumByName(text);
  const dialect = DIALECTS.find(({ prompt, generation }) => sums.has(prompt) && sums.has(generation));
  if (!dialect) throw new Error('the page has no token counters of a known engine');
  const started = sums.get(STARTED);
  return {
    promptTokens: count(sums.get(dialect.prompt)!),
    generationTokens: count(sums.get(dialect.generation)!),
    startedMs: started !== undefined && started > 0 ? Math.round(started * 1_000) : null,
    countsCached: dialect.countsCached,
  };
}

/**
 * Sums the samples that we need over their labels, from the Prometheus text format: `name{label="…"} value [time]`. A
 * declared counter without a sample is 0. Hand-written: the only parser on npm (parse-prometheus-text-format) is not
 * maintained, and builds an object for every line of a page, of which we need five.
 */
function sumByName(text: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const declared = /^# TYPE (\S+) counter\s*$/.exec(line)?.[1];
    if (declared !== undefined && WANTED.has(declared) && !sums.has(declared)) sums.set(declared, 0);
    const name = /^[A-Za-z_:][\w:]*/.exec(line)?.[0];
    if (name === undefined || !WANTED.has(name)) continue;
    // A quoted label value may contain anything, even closing braces.
    const value = /^(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s+(\S+)/.exec(line.slice(name.length))?.[1];
    sums.set(name, (sums.get(name) ?? 0) + Number(value ?? NaN));
  }
  return sums;
}

function count(value: number): number {
  if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) throw new Error('a token counter is not a valid number');
  return Math.round(value);
}
