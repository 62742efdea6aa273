import { isTyped } from './typed';

it.each([
  ['Acme', 'Acme'],
  ['Acme  North', 'Acme North'],
  ['Acme\u00a0North', 'Acme North'],
  ['Cafe\u0301', 'Caf\u00e9'],
  ['Caf\u00e9', 'Cafe\u0301'],
  ['Acme', ' Acme '],
])('%j is confirmed by what a page shows of it: %j', (name, typed) => {
  expect(isTyped(name, typed)).toBe(true);
});

it.each([
  ['Acme', ''],
  ['Acme', 'acme'],
  ['Acme North', 'AcmeNorth'],
  ['Caf\u00e9', 'Cafe'],
])('%j is not confirmed by %j', (name, typed) => {
  expect(isTyped(name, typed)).toBe(false);
});
