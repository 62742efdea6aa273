// The keys by which the composed services believe each other: a file for each service beside the other secrets. What is
// there stays, so a rotation in that directory (`tollgate message-keys rotate .tollgate/secrets …`) reaches the
// containers, which have the files mounted. Needs a checkout that is compiled.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';
import { secretsDirectory } from './secrets.mjs';

/** The directory keeps others out; the files must be readable by whatever user a container runs as. */
const FILE_MODE = 0o444;

export function makeMessageKeys(dataDirectory) {
  const { createMessageKeys } = createRequire(import.meta.url)(
    join(ROOT, 'libs/messaging/dist/kafka/sign/make-keys.js'),
  );
  createMessageKeys(secretsDirectory(dataDirectory), FILE_MODE);
}
