import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { aclFile, aclLine, REDIS_RIGHTS, REDIS_USERS, rulesOf, type RedisUser, type Rights } from './rights';

/** What the processes call besides functions: the lists of tenants, the write probe, whether a shard answers. */
const DIRECT = ['fcall', 'exists', 'set', 'zadd', 'zrange', 'zrangebylex'];

/** Every command in the functions of a seam. */
function commandsIn(seam: string): Set<string> {
  const directory = join(__dirname, `../../${seam}/src/redis/lua`);
  const code = readdirSync(directory).map((file) => readFileSync(join(directory, file), 'utf8'));
  const named = code.join('\n').matchAll(/(?:redis\.p?call|in_parts)\('(\w+)'/g);
  return new Set([...named].map(([, command]) => command!.toLowerCase()));
}

function granted(prefix: string): Set<string> {
  const rights = REDIS_USERS.map((user) => REDIS_RIGHTS[user]);
  const onKeys = rights.flatMap(({ grants }) => grants.filter(({ keys }) => keys[0].startsWith(prefix)));
  return new Set(onKeys.flatMap(({ commands }): readonly string[] => commands));
}

it.each([
  ['admission', 'tga:'],
  ['credentials', 'tgc:'],
])('the users of %s may run every command of its functions, and no unused one', (seam, prefix) => {
  const withoutKeys = REDIS_USERS.flatMap((user): readonly string[] => REDIS_RIGHTS[user].commands);
  const used = commandsIn(seam);
  const allowed = granted(prefix);
  expect([...used].filter((command) => !allowed.has(command) && !withoutKeys.includes(command))).toEqual([]);
  expect([...allowed].filter((command) => !used.has(command) && !DIRECT.includes(command))).toEqual([]);
});

it('no service may load functions, and only auth may write a credential', () => {
  for (const user of ['gateway', 'auth', 'metering', 'billing'] as const)
    expect(rulesOf(user)).not.toMatch(/\+(@|function|eval|script|config|acl|flush|keys|scan|del |debug|monitor)/);
  for (const user of ['gateway', 'metering', 'billing', 'functions'] as const) {
    const writers = REDIS_RIGHTS[user].grants.filter(
      ({ keys, commands }) =>
        keys.some((key) => key.startsWith('tgc:')) && (commands as readonly string[]).includes('hset'),
    );
    expect(writers).toEqual([]);
  }
});

/** A user's rights in docs/rights.md as one line: a bullet for commands without keys, and one for each grant. */
function documentOf(user: RedisUser): string {
  const { what, commands, grants, ...rest }: Rights = REDIS_RIGHTS[user];
  const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(' ');
  return [
    `### \`${user}\` in Redis: ${what}`,
    ...(rest.channels ?? []).map((channel) => `- On channel ${code([channel])}.`),
    `- Without a key: ${code(commands)}.`,
    ...grants.map((grant) => `- On ${code(grant.keys)}: ${code(grant.commands)}. For: ${grant.for}.`),
  ].join(' ');
}

it('docs/rights.md has the rights of each user, and the lines that an operator pastes', () => {
  const docs = readFileSync(join(__dirname, '../../../docs/rights.md'), 'utf8');
  const sections = docs.split(/^(?=#+ |```)/m).map((section) => section.trim().replace(/\s+/g, ' '));
  expect(sections.filter((section) => /^### `\w+` in Redis/.test(section))).toEqual(REDIS_USERS.map(documentOf));
  expect(docs.split('\n')).toEqual(expect.arrayContaining(REDIS_USERS.map((user) => aclLine(user, '>PASSWORD'))));
});

it('an ACL file contains no password, and nobody gets in without one except to PING', () => {
  const passwords = {
    gateway: 'g-pass',
    auth: 'a-pass',
    metering: 'm-pass',
    billing: 'b-pass',
    functions: 'f-pass',
    admin: 'x-pass',
  };
  const lines = aclFile(passwords).trimEnd().split('\n');
  for (const password of Object.values(passwords)) expect(lines.join()).not.toContain(password);
  const open = lines.filter((line) => !/ #[0-9a-f]{64} /.test(line));
  expect(open).toEqual(['user default off resetpass ~* &* +@all', 'user health on nopass +ping']);
});
