import type { TollgateConfig } from '@tollgate/runtime';
import { enginesOf } from './engines';

const config = (...backends: object[]) => ({ models: [{ backends }] }) as unknown as TollgateConfig;

describe('the engines of a configuration', () => {
  it('keep the name of the built-in simulator when its port changes', () => {
    const simulated = config({ url: 'simulator:' });
    const before = enginesOf(simulated, 'http://127.0.0.1:1001/v1');
    const after = enginesOf(simulated, 'http://127.0.0.1:1002/v1');
    expect(before).toMatchObject([{ name: 'simulator:', url: 'http://127.0.0.1:1001/metrics' }]);
    expect(after).toMatchObject([{ name: 'simulator:', url: 'http://127.0.0.1:1002/metrics' }]);
  });

  it('are named by their page, without its query', () => {
    const backend = { url: 'http://gpu:8000/v1', metrics: 'http://gpu:8000/metrics?token=secret' };
    expect(enginesOf(config(backend), undefined)).toMatchObject([{ name: 'http://gpu:8000/metrics' }]);
  });

  it('have no page if none is known', () => {
    expect(enginesOf(config({ url: 'simulator:' }, { url: 'http://gpu:8000/v1' }), undefined)).toEqual([]);
  });
});
