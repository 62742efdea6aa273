import { PlaceList } from './place-list';

const item = (name: string) => ({ name });

it('a list holds what was added and not removed', () => {
  const list = new PlaceList<{ name: string }>();
  const [a, b, c] = ['a', 'b', 'c'].map(item) as [{ name: string }, { name: string }, { name: string }];
  const places = [a, b, c].map((each) => list.add(each));
  expect(list.size).toBe(3);
  expect(list.remove(b, places[1]!)).toBe(true);
  expect(list.size).toBe(2);
  expect([...list]).toEqual([a, c]);
});

it('a list removes an item once, also when its place has another item by then', () => {
  const list = new PlaceList<{ name: string }>();
  const [first, second] = [item('first'), item('second')];
  const place = list.add(first);
  expect(list.remove(first, place)).toBe(true);
  expect(list.remove(first, place)).toBe(false);
  expect(list.add(second)).toBe(place);
  expect(list.remove(first, place)).toBe(false);
  expect([...list]).toEqual([second]);
});

it('can be changed while it is read', () => {
  const list = new PlaceList<{ name: string; place: number }>();
  for (const name of ['a', 'b', 'c']) {
    const each = { name, place: -1 };
    each.place = list.add(each);
  }
  for (const each of list) list.remove(each, each.place);
  expect(list.size).toBe(0);
  expect([...list]).toEqual([]);
});

it('a list has as many places as items were in it at once, however many came and went', () => {
  const list = new PlaceList<{ name: string }>();
  const seen = new Set<number>();
  for (let turn = 0; turn < 1_000; turn++) {
    const each = item(String(turn));
    const other = item('other');
    const places = [list.add(each), list.add(other)];
    places.forEach((place) => seen.add(place));
    list.remove(each, places[0]!);
    list.remove(other, places[1]!);
  }
  expect(seen.size).toBe(2);
});
