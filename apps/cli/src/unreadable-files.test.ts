import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readKeysFile } from './keys/keys-file';
import { readUsers } from './servers/kafka-users';

describe('a file that cannot be read', () => {
  it('is named with the reason in words', () => {
    const none = join(tmpdir(), 'tollgate-no-such-file');
    const why = 'cannot be read: there is no such file or directory';
    expect(() => readKeysFile(none, undefined)).toThrow(`${none} ${why}.`);
    expect(() => readKeysFile(tmpdir(), undefined)).toThrow(`${tmpdir()} cannot be read: it is a directory.`);
    expect(() => readUsers(none)).toThrow(`${join(none, 'kafka-gateway-password')} ${why}`);
  });
});

describe('a file of keys with a wrong alias', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-keys-'));
  const file = join(directory, 'keys.yaml');
  afterAll(() => rmSync(directory, { recursive: true }));

  it.each([
    [
      'of a value around it',
      '&key { name: x, tags: *key }',
      ':2: the alias *key is inside the value that it stands for.',
    ],
    ['without its anchor', '*none', ' is not YAML: Unresolved alias (the anchor must be set before the alias): none'],
  ])('%s is named with the reason', (_, key, why) => {
    writeFileSync(file, `tenant: ten_1\nkeys: [${key}]\n`);
    expect(() => readKeysFile(file, undefined)).toThrow(`${file}${why}`);
  });
});
