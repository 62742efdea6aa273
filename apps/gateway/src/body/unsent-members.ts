import { NOT_PASSED_ON_IN_MESSAGES } from './message-schema';
import type { ChatCompletionRequest } from './schemas';
import { NOT_PASSED_ON_IN_CALLS } from './tool-schemas';

/**
 * Removes what clients send back from earlier answers and no backend gets. It goes from the body itself, so that what
 * is counted, estimated and held is what is sent.
 */
export function removeUnsent(messages: ChatCompletionRequest['messages']): void {
  for (const message of messages) {
    remove(message, NOT_PASSED_ON_IN_MESSAGES);
    for (const call of (message.tool_calls ?? []) as { function?: object }[])
      if (call.function !== undefined) remove(call.function, NOT_PASSED_ON_IN_CALLS);
  }
}

function remove(from: object, names: readonly string[]): void {
  for (const name of names) if (Object.hasOwn(from, name)) delete (from as Record<string, unknown>)[name];
}
