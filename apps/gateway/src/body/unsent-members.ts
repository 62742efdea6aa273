import { NOT_PASSED_ON_IN_MESSAGES } from './message-schema';
import type { ChatCompletionRequest } from './schemas';
import { NOT_PASSED_ON_IN_CALLS, NOT_PASSED_ON_IN_FUNCTIONS } from './tool-schemas';

/**
 * Removes what clients send back from earlier answers and no backend gets. It goes from the body itself, so that what
 * is counted, estimated and held is what is sent.
 */
export function removeUnsent(messages: ChatCompletionRequest['messages']): void {
  for (const message of messages) {
    remove(message, NOT_PASSED_ON_IN_MESSAGES);
    for (const call of (message.tool_calls ?? []) as { function?: object }[]) {
      remove(call, NOT_PASSED_ON_IN_CALLS);
      if (call.function !== undefined) remove(call.function, NOT_PASSED_ON_IN_FUNCTIONS);
    }
  }
}

function remove(from: object, names: readonly string[]): void {
  for (const name of names) if (Object.hasOwn(from, name)) delete (from as Record<string, unknown>)[name];
}
