import { providerOf, providerSignIn, type ProviderSignIn } from './oidc';

const provider = providerOf({
  ...{ issuer: 'https://issuer.example', clientId: 'tollgate', clientSecret: 'secret' },
  ...{ domains: ['example.com'], rolesClaim: 'groups', roles: [] },
});
const mapped = (profile: Record<string, unknown>) =>
  provider.mapProfileToUser({ email: 'ada@example.com', email_verified: true, name: 'Ada', ...profile });

it.each([
  ...['Be\u0007ll', 'line\nbreak', 'a\u0000', 'a\u0085b', 'a\u2028b', 'a\u202eb', 'a\u2066b', '\u200b', '   ', ''],
  ...['x'.repeat(101), 7, null, undefined, ['Ada'], { first: 'Ada' }],
])('a profile with the name %j has its address as its name', (name) => {
  expect(mapped({ name })).toEqual({ email: 'ada@example.com', emailVerified: true, name: 'ada@example.com' });
});

it.each([
  ['Ada Lovelace', 'Ada Lovelace'],
  [' Ada ', 'Ada'],
  ['עדה', 'עדה'],
])('a profile with the name %j is named %j', (name, shown) => {
  expect(mapped({ name })).toMatchObject({ name: shown });
});

it.each([
  ...['a\u0007@example.com', 'a\n@example.com', 'a\u202eb@example.com', 'a\u2028b@example.com', ''],
  // In lower case, they would be the ASCII addresses of other people.
  ...['\u212aim@example.com', 'ada@examp\u212ae.com', '\u0130da@example.com'],
  ...[`${'a'.repeat(250)}@example.com`, 'ada@evil.example', 'ada@example.com.evil.example', 7, null],
])('the address %j signs nobody in, and its groups give no role', (email) => {
  const found: ProviderSignIn = {};
  const user = providerSignIn.run(found, () => mapped({ email, groups: ['ops'] }));
  expect([user, found]).toEqual([{ email: '', emailVerified: false }, {}]);
});

it('an address is in lower case', () => {
  expect(mapped({ email: 'Ada.ÄÖ@Example.com' })).toMatchObject({ email: 'ada.äö@example.com' });
});
