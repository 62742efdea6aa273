import { FormerSecretUse } from './former-secret';
import { metrics } from '../metrics/metrics';

const mockWarn = jest.fn();
jest.mock('../logging/logging', () => ({ logger: () => ({ warn: mockWarn }) }));
beforeEach(() => {
  metrics.resetMetrics();
  mockWarn.mockReset();
});

const shown = async (): Promise<string | undefined> =>
  /^tollgate_former_secret_requests_total\{secret="operator"\} (\d+)$/m.exec(await metrics.metrics())?.[1];

describe('the use of a former secret', () => {
  it('is counted for each request, and only for the former one', async () => {
    const use = new FormerSecretUse('operator', ['in force', 'former']);
    expect(await shown()).toBe('0');
    for (const place of [0, -1, 1, 0, 1]) use.note(place, '10.0.0.7');
    expect(await shown()).toBe('2');
  });

  it('is logged once, with the address of the caller', () => {
    const use = new FormerSecretUse('operator', ['in force', 'former']);
    use.note(0, '10.0.0.6');
    expect(mockWarn).not.toHaveBeenCalled();
    for (const address of ['10.0.0.7', '10.0.0.8']) use.note(1, address);
    expect(mockWarn.mock.calls).toEqual([[{ address: '10.0.0.7' }, 'a caller uses the former operator secret']]);
  });

  it('is not shown if there is no former one', async () => {
    new FormerSecretUse('operator', ['in force']).note(0, '10.0.0.7');
    expect(await shown()).toBeUndefined();
  });
});
