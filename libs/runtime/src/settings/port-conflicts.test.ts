import { type Door, portConflicts } from './port-conflicts';

const door = (setting: string, port: number, host = '127.0.0.1'): Door => ({ setting, host, port });

it('two doors with one port are named, unless it is any free port or their addresses differ', () => {
  expect(portConflicts([door('A', 8080), door('B', 8081), door('C', 8080)])).toEqual([
    'C must differ from A: both are 8080',
  ]);
  expect(portConflicts([door('A', 0), door('B', 0)])).toEqual([]);
  expect(portConflicts([door('A', 8080, '192.0.2.1'), door('B', 8080)])).toEqual([]);
  for (const all of ['0.0.0.0', '::']) {
    expect(portConflicts([door('A', 8080, all), door('B', 8080)])).toHaveLength(1);
    expect(portConflicts([door('A', 8080), door('B', 8080, all)])).toHaveLength(1);
  }
});
