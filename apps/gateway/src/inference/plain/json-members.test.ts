import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { membersOf } from './json-members';

const SEED = 20_261_123;
const latin1 = (json: string) => Buffer.from(json).toString('latin1');
const utf8 = (bytes: string) => Buffer.from(bytes, 'latin1').toString('utf8');

describe('the members of an object', () => {
  it('are those that JSON.parse finds, in any form of the JSON', async () => {
    await assertRuns(
      fc.property(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()),
        fc.constantFrom(0, 1, 4, '\t', '\r\n '),
        (object, indent) => {
          const json = latin1(JSON.stringify(object, null, indent));
          const members = membersOf(json);
          const read = Object.fromEntries(
            members.map(({ name, valueStart, end }) => [name, JSON.parse(utf8(json.slice(valueStart, end)))]),
          );
          expect(read).toEqual(JSON.parse(JSON.stringify(object)));
          const again = `{${members.map(({ start, end }) => json.slice(start, end)).join(',')}}`;
          expect(JSON.parse(utf8(again))).toEqual(JSON.parse(JSON.stringify(object)));
        },
      ),
      { seed: SEED, leastRuns: 500 },
    );
  });

  it('are found with escaped names, and none in an empty object', () => {
    expect(membersOf(' { } ')).toEqual([]);
    expect(membersOf('{"mod\\u0065l" : "a\\"" , "b":[{"]":"}"}]}').map(({ name }) => name)).toEqual(['model', 'b']);
  });
});
