import { stampPrice } from '@tollgate/runtime';
import { pricingOf } from './model-row';

it.each([
  [
    { input: '0.15', cachedInput: '0.075', output: '0.6', request: '0' },
    { prompt: '0.00000015', input_cache_read: '0.000000075', completion: '0.0000006', request: '0' },
  ],
  [
    { input: '750000', output: '999999.5', request: '0.01' },
    { prompt: '0.75', input_cache_read: '0.75', completion: '0.9999995', request: '0.01' },
  ],
])('the price of one token is shown with all its digits', (price, shown) => {
  expect(pricingOf(stampPrice(price, 'chat'), 'EUR')).toEqual({ currency: 'EUR', ...shown });
});

it('the output of an embedding model costs nothing', () => {
  const price = stampPrice({ input: '0.02', output: '7', request: '0' }, 'embedding');
  expect(pricingOf(price, 'USD')).toMatchObject({ prompt: '0.00000002', completion: '0' });
});
