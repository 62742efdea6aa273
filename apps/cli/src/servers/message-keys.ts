import {
  BadKeysError,
  createMessageKeys,
  rotateMessageKeys,
  type KeyFiles,
  type RotationStep,
} from '@tollgate/messaging';
import { Failure } from '../command/failure';
import type { Output } from '../command/output';

/** The operator's task after each step, before the next one. */
const NEXT: Record<RotationStep, string> = {
  add:
    'Distribute the files to all services. When each has read its own (tollgate_message_keys_reloads_total, ' +
    'or a log line), continue with: promote',
  promote:
    'Distribute the files to all services. When each has read its own, and no message that the old keys signed ' +
    'is waiting or quarantined, continue with: remove',
  remove: 'Distribute the files to all services. The old keys are no longer accepted.',
};

export function createKeys(directory: string, output: Output): void {
  const made = attempt(() => createMessageKeys(directory));
  const line = made.files.length === 0 ? 'All keys exist already.' : `${made.pairs} keys created, in:`;
  output.answer({ ok: true, ...made }, [line, ...made.files].join('\n'));
}

export function rotateKeys(directory: string, step: RotationStep, output: Output): void {
  const done = attempt(() => rotateMessageKeys(directory, step));
  output.answer({ ok: true, step, ...done }, `${done.pairs} keys, in:\n${done.files.join('\n')}\n${NEXT[step]}`);
}

function attempt(work: () => KeyFiles): KeyFiles {
  try {
    return work();
  } catch (error) {
    if (error instanceof BadKeysError) throw new Failure(error.message, 'message_keys_wrong');
    throw new Failure(`The keys cannot be read or written: ${(error as Error).message}`, 'message_keys_unwritable');
  }
}
