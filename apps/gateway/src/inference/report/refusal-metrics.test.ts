import { Counter, Registry } from 'prom-client';
import { RefusalSeries } from './refusal-metrics';

async function counted(maxPlans: number, refused: readonly (readonly [code: string, plan: string])[]) {
  const counter = new Counter({
    name: 'refused',
    help: 'x',
    labelNames: ['code', 'plan'],
    registers: [new Registry()],
  });
  const series = new RefusalSeries(counter, maxPlans);
  for (const [code, plan] of refused) series.count(code, plan);
  const { values } = await counter.get();
  return Object.fromEntries(values.map(({ labels, value }) => [`${labels['plan']} ${labels['code']}`, value]));
}

describe('refusals by code and plan', () => {
  it('are counted for each pair, and without a plan where no key is known', async () => {
    expect(
      await counted(10, [
        ['credit_exhausted', 'small'],
        ['credit_exhausted', 'small'],
        ['credit_exhausted', 'large'],
        ['invalid_api_key', ''],
      ]),
    ).toEqual({ 'small credit_exhausted': 2, 'large credit_exhausted': 1, ' invalid_api_key': 1 });
  });

  it('have a limited number of plans: further ones share a series, and known ones keep theirs', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ['model_not_found', `plan-${index}`] as const);
    const series = await counted(3, [...many, ['model_not_found', 'plan-1'], ['api_error', 'plan-999']]);
    expect(series).toEqual({
      'plan-0 model_not_found': 1,
      'plan-1 model_not_found': 2,
      'plan-2 model_not_found': 1,
      'other model_not_found': 997,
      'other api_error': 1,
    });
  });
});
