// Loaded by `node --import`. Makes the hash of a password almost free: the tests check hundreds of passwords, and none
// of them is about the work that a guesser has.
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const { scrypt } = crypto;
crypto.scrypt = (password, salt, length, options, done) =>
  scrypt(password, salt, length, { ...options, N: 2, r: 1 }, done);
syncBuiltinESMExports();
