import type { Outcome, TokenCounts } from '@tollgate/contracts';
import { Counter, Histogram, metrics } from '@tollgate/runtime';
import type { InferenceErrorCode } from '../../inference-errors';

const registers = [metrics];

const requests = new Counter({
  name: 'tollgate_requests_total',
  help: 'Ended inference requests, by model (empty if refused before the model was known) and outcome or error code',
  labelNames: ['model', 'outcome'] as const,
  registers,
});

const durations = new Histogram({
  name: 'tollgate_request_duration_seconds',
  help: 'Time from a request to the end of its answer, for served requests',
  labelNames: ['model'] as const,
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  registers,
});

const firstTokens = new Histogram({
  name: 'tollgate_time_to_first_token_seconds',
  help: 'Time from a request to its first output, for streams',
  labelNames: ['model'] as const,
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30],
  registers,
});

const tokens = new Counter({
  name: 'tollgate_tokens_total',
  help: 'Tokens of served requests, by kind: prompt, cached (the part of prompt that was cached), completion',
  labelNames: ['model', 'kind'] as const,
  registers,
});

const backendTokens = new Counter({
  name: 'tollgate_backend_tokens_total',
  help: 'Settled tokens of the answers of a backend, by kind: prompt, completion',
  labelNames: ['model', 'backend', 'kind'] as const,
  registers,
});

export type RequestOutcome = Outcome | InferenceErrorCode | 'replayed';

/** The metric series of one model. They are looked up once, so that a request creates no labels. */
class ModelSeries {
  private readonly byOutcome = new Map<RequestOutcome, Counter.Internal>();
  readonly duration: Histogram.Internal<'model'>;
  readonly firstToken: Histogram.Internal<'model'>;
  private readonly prompt: Counter.Internal;
  private readonly cached: Counter.Internal;
  private readonly completion: Counter.Internal;
  private readonly byBackend = new Map<string, { prompt: Counter.Internal; completion: Counter.Internal }>();

  constructor(private readonly model: string) {
    this.duration = durations.labels(model);
    this.firstToken = firstTokens.labels(model);
    this.prompt = tokens.labels(model, 'prompt');
    this.cached = tokens.labels(model, 'cached');
    this.completion = tokens.labels(model, 'completion');
  }

  count(outcome: RequestOutcome): void {
    let series = this.byOutcome.get(outcome);
    if (!series) this.byOutcome.set(outcome, (series = requests.labels(this.model, outcome)));
    series.inc();
  }

  countTokens({ promptTokens, cachedTokens, completionTokens }: TokenCounts): void {
    this.prompt.inc(promptTokens);
    if (cachedTokens > 0) this.cached.inc(cachedTokens);
    if (completionTokens > 0) this.completion.inc(completionTokens);
  }

  countBackend(backend: string, { promptTokens, completionTokens }: TokenCounts): void {
    let series = this.byBackend.get(backend);
    if (!series) {
      const of = (kind: string) => backendTokens.labels(this.model, backend, kind);
      this.byBackend.set(backend, (series = { prompt: of('prompt'), completion: of('completion') }));
    }
    series.prompt.inc(promptTokens);
    series.completion.inc(completionTokens);
  }
}

/** By model id. Only present or former models of the configuration, never a name that a client made up. */
const byModel = new Map<string, ModelSeries>();

/** The series of a model; of no model, if the name is empty. */
export function seriesOf(model: string): ModelSeries {
  let series = byModel.get(model);
  if (!series) byModel.set(model, (series = new ModelSeries(model)));
  return series;
}
