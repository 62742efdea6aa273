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
