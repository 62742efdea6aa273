import { type BackendHour } from '@tollgate/contracts';
import { PolledGauge, type Reading } from '@tollgate/runtime';

/** The last hour that can be judged is the previous one, or the one before it. */
export const METRIC_HOURS = 2;

/** Every process of metering reports the same value. */
export const driftRatio = new PolledGauge({
  name: 'tollgate_backend_drift_ratio',
  help: 'Share of the engine’s tokens in the last complete hour that the books do not explain; above 0: not charged',
  labelNames: ['backend', 'kind'] as const,
});

/** The newest judged hour of each engine. */
export function readings(hours: readonly BackendHour[]): Reading<'backend' | 'kind'>[] {
  const seen = new Set<string>();
  return hours.flatMap(({ engine, backends, prompt, generation }) => {
    if (seen.has(engine) || prompt.verdict === 'running' || prompt.verdict === 'not_observed') return [];
    seen.add(engine);
    const backend = backends.join(' ');
    return [
      { labels: { backend, kind: 'prompt' }, value: prompt.driftRatio },
      { labels: { backend, kind: 'generation' }, value: generation.driftRatio },
    ];
  });
}
