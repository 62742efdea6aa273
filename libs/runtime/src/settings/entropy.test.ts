import { randomBytes, randomUUID } from 'node:crypto';
import { entropyBits } from './entropy';

const NEEDED_BITS = 80;

describe('the estimate of entropy', () => {
  it.each([
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
    'password12345678',
    'abababababababababababababababab',
    'sixteen-characters',
    '',
    'x',
  ])('finds %j easy to guess', (secret) => expect(entropyBits(secret)).toBeLessThan(NEEDED_BITS));

  it('finds every form of random secret hard to guess, each time', () => {
    for (let time = 0; time < 1_000; time++) {
      const made = [
        randomBytes(32).toString('hex'),
        randomBytes(24).toString('hex'),
        randomBytes(16).toString('hex'),
        randomBytes(32).toString('base64url'),
        randomBytes(18).toString('base64'),
        randomUUID(),
      ];
      for (const secret of made) expect(entropyBits(secret)).toBeGreaterThan(NEEDED_BITS);
    }
  });
});
