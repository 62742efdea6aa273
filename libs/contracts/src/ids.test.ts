import { idBound, idTimeMs, isId, newId } from './ids';
import { hashCredential, isWellFormedCredential, mintCredential } from './credentials';

describe('ids', () => {
  it('ascend strictly within one process, even many in a millisecond', () => {
    const ids = Array.from({ length: 20_000 }, () => newId('req'));
    expect([...ids].sort()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => isId('req', id))).toBe(true);
  });

  it('lie within the bounds of their time', () => {
    const now = Date.now() + 3_600_000;
    const id = newId('req', now);
    expect(id >= idBound('req', now)).toBe(true);
    expect(id < idBound('req', now + 1)).toBe(true);
    expect(idTimeMs(id)).toBe(now);
  });

  it('stay ahead of a clock that is set back by minutes, and follow one that is set back by more', () => {
    const now = Date.now() + 2 * 3_600_000;
    const first = newId('req', now);
    expect(newId('req', now - 1_800_000) > first).toBe(true);
    const ids = [1, 2, 3].map(() => newId('req', now - 1_900_000));
    expect(ids.map(idTimeMs)).toEqual(ids.map(() => now - 1_900_000));
    expect([...ids].sort()).toEqual(ids);
  });

  it('must have the whole form, not only the prefix', () => {
    for (const bad of ['req_', 'req_xyz', 'key_01k9', 7, null, 'req_' + '8'.repeat(26)])
      expect(isId('req', bad)).toBe(false);
  });
});

describe('credentials', () => {
  it('can be checked and distinguished by kind without a look-up', () => {
    const key = mintCredential('key');
    expect(key.value).toMatch(/^sk-svc-[0-9A-Za-z]{49}$/);
    expect(isWellFormedCredential('key', key.value)).toBe(true);
    expect(isWellFormedCredential('token', key.value)).toBe(false);
    expect(key.hash).toBe(hashCredential(key.value));
    expect(key.last4).toBe(key.value.slice(-4));
    const typo = key.value.slice(0, 10) + (key.value[10] === 'a' ? 'b' : 'a') + key.value.slice(11);
    expect(isWellFormedCredential('key', typo)).toBe(false);
    expect(mintCredential('token').value).toMatch(/^fma_[0-9A-Za-z]{49}$/);
  });

  it('are accepted with the checksums that were issued once', () => {
    for (const [body, checksum] of [
      ['0'.repeat(43), '0D47fe'],
      ['151'.padStart(43, '0'), '00DOfW'],
    ] as const)
      expect(isWellFormedCredential('key', `sk-svc-${body}${checksum}`)).toBe(true);
  });
});
