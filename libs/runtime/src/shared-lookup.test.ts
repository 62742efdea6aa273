import dns from 'node:dns';
import { sharedLookup } from './shared-lookup';

type Answer = (error: NodeJS.ErrnoException | null, address: string, family: number) => void;

describe('lookups of one name', () => {
  const asked: { name: string; answer: Answer }[] = [];
  beforeEach(() => {
    asked.length = 0;
    jest.spyOn(dns, 'lookup').mockImplementation(((name: string, _: object, answer: Answer) => {
      asked.push({ name, answer });
    }) as never);
  });
  afterEach(() => jest.restoreAllMocks());

  it('share one call in progress and its answer', () => {
    const [first, second, other] = [jest.fn(), jest.fn(), jest.fn()];
    sharedLookup('kafka', {}, first);
    sharedLookup('kafka', {}, second);
    sharedLookup('simulator', {}, other);
    expect(asked.map(({ name }) => name)).toEqual(['kafka', 'simulator']);
    asked[0]!.answer(null, '192.0.2.1', 4);
    expect(first).toHaveBeenCalledWith(null, '192.0.2.1', 4);
    expect(second).toHaveBeenCalledWith(null, '192.0.2.1', 4);
    expect(other).not.toHaveBeenCalled();
  });

  it('share a failure, after which the next one asks again', () => {
    const [first, second, next] = [jest.fn(), jest.fn(), jest.fn()];
    sharedLookup('kafka', {}, first);
    sharedLookup('kafka', {}, second);
    const error = Object.assign(new Error('not found'), { code: 'ENOTFOUND' });
    asked[0]!.answer(error, '', 0);
    expect([first.mock.calls[0]![0], second.mock.calls[0]![0]]).toEqual([error, error]);
    sharedLookup('kafka', {}, next);
    expect(asked).toHaveLength(2);
    asked[1]!.answer(null, '192.0.2.1', 4);
    expect(next).toHaveBeenCalledWith(null, '192.0.2.1', 4);
  });

  it('do not share an answer of another form', () => {
    sharedLookup('kafka', { all: true }, jest.fn());
    sharedLookup('kafka', { all: false }, jest.fn());
    sharedLookup('kafka', { family: 4 }, jest.fn());
    expect(asked).toHaveLength(3);
  });
});
