import { SERVICES } from './services';
import { ASKERS, askersOf, consumersOf, servicePairs } from './speakers';
import { TOPICS, type Topic } from './topics';

test('a service may be asked by exactly those who may ask one of its subjects', () => {
  expect(askersOf('auth')).toEqual(['gateway', 'billing', 'console']);
  expect(askersOf('metering')).toEqual(['gateway', 'billing', 'console']);
  expect(askersOf('billing')).toEqual(['gateway', 'auth', 'billing', 'console']);
  expect(askersOf('console')).toEqual(['gateway']);
});

test('one service may request a change of money or rights, or gateway and console, which know the caller', () => {
  const reads = [
    ...['list', 'get', 'news', 'spent', 'query', 'events', 'digest', 'audit', 'compare', 'summary', 'spendable'],
    ...['keys', 'requests', 'series', 'state', 'latest', 'entry'],
  ];
  const changing = Object.entries(ASKERS).filter(([subject]) => !reads.includes(subject.split('.').at(-1)!));
  expect(changing.length).toBeGreaterThan(10);
  for (const [subject, askers] of changing)
    expect([subject, askers.length === 1 || askers.join() === 'gateway,console']).toEqual([subject, true]);
});

test('each topic has a producer, and its consumers are services', () => {
  for (const topic of Object.keys(TOPICS) as Topic[]) {
    expect(TOPICS[topic].producers.length).toBeGreaterThan(0);
    expect(SERVICES).toEqual(expect.arrayContaining(consumersOf(TOPICS[topic])));
  }
  expect(consumersOf(TOPICS['credit-news'])).toEqual(['gateway']);
  expect(consumersOf(TOPICS['budget-events'])).toEqual([]);
});

test('a topic whose messages share records is consumed by one service, which signs what it quarantines of them', () => {
  const sharing = Object.values(TOPICS).filter(({ sharesRecords }) => sharesRecords);
  expect(sharing.length).toBeGreaterThan(0);
  for (const topic of sharing) expect(consumersOf(topic)).toHaveLength(1);
});

test('the pairs are exactly those with messages between them, each once', () => {
  expect(servicePairs().map(({ from, to }) => `${from} ${to}`)).toEqual([
    'gateway auth',
    'gateway metering',
    'gateway billing',
    'gateway console',
    'auth gateway',
    'auth billing',
    'auth console',
    'metering gateway',
    'metering metering',
    'metering billing',
    'metering console',
    'billing gateway',
    'billing auth',
    'billing metering',
    'billing billing',
    'billing console',
    'console gateway',
    'console auth',
    'console metering',
    'console billing',
  ]);
});
