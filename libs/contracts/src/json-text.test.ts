import { jsonText } from './json-text';

const DEPTH = 100_000;

it.each(['a', ''])('writes a value that is nested too deeply in members named %j, without its inner values', (name) => {
  const inner = JSON.parse(`${`{"${name}":`.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`) as unknown;
  expect(jsonText(inner)).toBe(`{"${name}":"nested too deep"}`);
  expect(jsonText({ id: 'x', inner })).toBe('{"id":"x","inner":"nested too deep"}');
});

it('writes any other value as it is', () => {
  expect(jsonText({ '': { '': [1] } })).toBe('{"":{"":[1]}}');
  expect(jsonText(undefined)).toBe('undefined');
});
