import { fieldTakenFor, foldFieldName, MAX_FIELD_NAME_CHARS, validatePassedThrough } from './request-fields';

const LONGEST = `m${'_'.repeat(MAX_FIELD_NAME_CHARS - 'model'.length)}odel`;

describe('the folded name of a field', () => {
  it('is made only of names up to the bound, because normalising longer ones can take quadratic time', () => {
    const normalize = jest.spyOn(String.prototype, 'normalize');
    expect([foldFieldName(LONGEST), fieldTakenFor(LONGEST)]).toEqual(['model', 'model']);
    expect(normalize).toHaveBeenCalledTimes(2);
    for (const fold of [foldFieldName, fieldTakenFor]) expect(() => fold(`${LONGEST}_`)).toThrow(RangeError);
    expect(validatePassedThrough(`${LONGEST}_`)).toContain(`longer than ${MAX_FIELD_NAME_CHARS} characters`);
    expect(normalize).toHaveBeenCalledTimes(2);
    normalize.mockRestore();
  });
});
