import { type ListenAddress, portConflicts } from './port-conflicts';

const listens = (setting: string, port: number, host = '127.0.0.1'): ListenAddress => ({ setting, host, port });

it('two addresses with one port are named, unless it is any free port or their hosts differ', () => {
  expect(portConflicts([listens('A', 8080), listens('B', 8081), listens('C', 8080)])).toEqual([
    'C must differ from A: both are 8080',
  ]);
  expect(portConflicts([listens('A', 0), listens('B', 0)])).toEqual([]);
  expect(portConflicts([listens('A', 8080, '192.0.2.1'), listens('B', 8080)])).toEqual([]);
  for (const all of ['0.0.0.0', '::']) {
    expect(portConflicts([listens('A', 8080, all), listens('B', 8080)])).toHaveLength(1);
    expect(portConflicts([listens('A', 8080), listens('B', 8080, all)])).toHaveLength(1);
  }
});
