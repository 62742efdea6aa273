import { logger } from '@tollgate/runtime';
import type { Messages } from '../messages';

/** At the end of a program. Never rejects: the modules flush after it, whatever became of the consumers. */
export async function stopConsuming(messages: Messages): Promise<void> {
  try {
    await messages.stopConsuming();
  } catch (error) {
    logger('messaging').error({ err: error }, 'consuming could not be stopped; the shutdown goes on');
  }
}
