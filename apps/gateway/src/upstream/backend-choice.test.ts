import { takeByWeight } from './backend-choice';

describe('the choice of a backend', () => {
  it('goes by weight, and takes each only once', () => {
    const backends = [1, 3, 6].map((weight) => ({
      name: String(weight),
      origin: String(weight),
      basePath: '',
      model: '',
      authorization: null,
      weight,
      dialect: 'any' as const,
      passthrough: new Set<string>(),
    }));
    const at = (random: number) => takeByWeight([...backends], random).origin;
    expect([0, 0.099, 0.1, 0.399, 0.4, 0.999].map(at)).toEqual(['1', '1', '3', '3', '6', '6']);
    const left = [...backends];
    expect(new Set([takeByWeight(left), takeByWeight(left), takeByWeight(left)]).size).toBe(3);
    expect(left).toEqual([]);
  });
});
