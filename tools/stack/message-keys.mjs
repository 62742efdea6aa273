// The keys with which the composed services sign their messages: a file for each service beside the other secrets.
// Existing keys are kept. The containers mount the files, so a rotation in that directory reaches them
// (`tollgate message-keys rotate .tollgate/secrets …`). Needs a compiled checkout.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';
import { secretsDirectory } from './secrets.mjs';

/** Every user of a container must be able to read the files. The directory keeps other users of the machine out. */
const FILE_MODE = 0o444;

export function makeMessageKeys(dataDirectory) {
  const { createMessageKeys } = createRequire(import.meta.url)(
    join(ROOT, 'libs/messaging/dist/kafka/sign/make-keys.js'),
  );
  createMessageKeys(secretsDirectory(dataDirectory), FILE_MODE);
}
