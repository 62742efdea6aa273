import { SERVICES } from '@tollgate/contracts';
import type { ScramUser } from '@tollgate/messaging';
import { fileProblem } from '@tollgate/runtime/file-problem';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageFailure } from '../command/failure';

/** Printable characters that SCRAM does not normalize. */
const PASSWORD = /^[\x21-\x7e]{16,256}$/;

/** One user per service. Its password is in `kafka-<service>-password`. */
export function readUsers(directory: string): ScramUser[] {
  return SERVICES.map((name) => {
    const file = join(directory, `kafka-${name}-password`);
    let password: string;
    try {
      password = readFileSync(file, 'utf8').trim();
    } catch (error) {
      throw new UsageFailure(`--users: ${file} cannot be read: ${fileProblem(error)}`);
    }
    if (!PASSWORD.test(password))
      throw new UsageFailure(`--users: ${file} must have a password of 16 to 256 printable characters, no spaces`);
    return { name, password };
  });
}
