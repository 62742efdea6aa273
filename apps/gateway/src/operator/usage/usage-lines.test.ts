import type { KeyNames } from '@tollgate/contracts';
import { focusLines, type NamedUsage } from './usage-lines';

const HEAD = focusLines({ currency: 'USD', provider: 'p' }).head;

/** The column Tags of a line of a key with these tags and owner. */
function tagsOf(tags: string[], owner: string | null = null): unknown {
  const times = { from: '2026-11-01T00:00:00.000Z', to: '2026-11-01T01:00:00.000Z' };
  const row = { ...times, id: null, costNanos: '1', names: { tags, owner } as KeyNames } as NamedUsage;
  const line = focusLines({ currency: 'USD', provider: 'p' }).line(row);
  const quoted = /"(\{(?:[^"]|"")*\})"/.exec(line)?.[1] ?? /\{\}/.exec(line)![0];
  return JSON.parse(quoted.replaceAll('""', '"'));
}

describe('the column Tags of FOCUS', () => {
  it.each([['has a key with a value for a tag with a colon, and true for another', ['team:search', 'batch']]])(
    '%s',
    (_, tags) => {
      expect(HEAD).toContain('Tags');
      expect(tagsOf(tags)).toEqual({ team: 'search', batch: true });
    },
  );

  it('loses no value of several tags with one key: FOCUS allows one text for each key', () => {
    expect(tagsOf(['team:search', 'team:ads', 'x'])).toEqual({ team: 'ads,search', x: true });
    // In any order of the tags.
    expect(tagsOf(['team:ads', 'x', 'team:search'])).toEqual({ team: 'ads,search', x: true });
    expect(tagsOf(['team', 'team:ads'])).toEqual({ team: 'ads' });
    expect(tagsOf(['team:ads', 'team'])).toEqual({ team: 'ads' });
  });

  it('has the owner of the key, besides the tags with the key owner', () => {
    expect(tagsOf(['batch'], 'ann')).toEqual({ batch: true, owner: 'ann' });
    expect(tagsOf(['owner:bob'], 'ann')).toEqual({ owner: 'ann' });
    expect(tagsOf(['owner:bob'])).toEqual({ owner: 'bob' });
  });

  it('has any key of a tag', () => {
    expect(tagsOf(['constructor:a', 'a:b:c'])).toEqual({ constructor: 'a', a: 'b:c' });
  });
});
