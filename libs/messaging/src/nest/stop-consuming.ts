import { logger } from '@tollgate/runtime';
import type { Messages } from '../messages';

/** Runs at the end of a program. Never rejects: the modules flush after it, whatever happened to the consumers. */
export async function stopConsuming(messages: Messages): Promise<void> {
  try {
    await messages.stopConsuming();
  } catch (error) {
    logger('messaging').error({ err: error }, 'stopping the consumers failed; the shutdown continues');
  }
}
