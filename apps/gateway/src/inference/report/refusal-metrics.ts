import { Counter, metrics } from '@tollgate/runtime';

/** Plans with their own series. Further ones share the label `other`: a configuration may have any number. */
const MAX_PLANS = 50;
const OTHER = 'other';

const counter = new Counter({
  name: 'tollgate_refusals_total',
  help:
    'Error answers of the inference API, by code and plan ' +
    `(empty: no key; other: beyond the first ${MAX_PLANS} plans)`,
  labelNames: ['code', 'plan'] as const,
  registers: [metrics],
});

/**
 * Counts error answers by code and plan. The table of errors bounds the codes, and `maxPlans` the plans, so a change of
 * `tollgate.yaml` never makes the metric grow without a limit.
 */
export class RefusalSeries {
  private readonly byPlan = new Map<string, Map<string, Counter.Internal>>();

  constructor(
    private readonly refused: Pick<Counter<'code' | 'plan'>, 'labels'>,
    private readonly maxPlans = MAX_PLANS,
  ) {}

  /** @param plan empty if the key is not known */
  count(code: string, plan: string): void {
    let codes = this.byPlan.get(plan);
    if (!codes) {
      if (this.byPlan.size >= this.maxPlans && plan !== OTHER) return this.count(code, OTHER);
      this.byPlan.set(plan, (codes = new Map<string, Counter.Internal>()));
    }
    let series = codes.get(code);
    if (!series) codes.set(code, (series = this.refused.labels(code, plan)));
    series.inc();
  }
}

export const refusals = new RefusalSeries(counter);
