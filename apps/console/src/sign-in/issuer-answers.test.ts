import { accountIdOf, issuerOf } from './issuer-answers';

const [FIRST, OTHER] = ['https://first.example', 'https://other.example'];

it.each([
  ['1', FIRST, '1'],
  ['1', OTHER, `${OTHER} 1`],
  // It would be the stored form of a subject of the other issuer.
  [`${OTHER} 1`, FIRST, `${FIRST} ${OTHER} 1`],
])('the subject %j of %s is stored as %j', (subject, issuer, stored) => {
  expect(accountIdOf(subject, issuer, FIRST)).toBe(stored);
  expect(issuerOf(stored, FIRST)).toBe(issuer);
});
