/** Where a message, a delta or a legacy choice has generated text. */
export const TEXT_FIELDS = ['content', 'reasoning_content', 'reasoning', 'text', 'refusal'] as const;

/** Everything in a message or delta that counts as output: text, reasoning, refusal, names and arguments of tool calls. */
export function outputText(holder: Record<string, unknown>): string {
  let text = '';
  for (const field of TEXT_FIELDS) if (typeof holder[field] === 'string') text += holder[field];
  for (const call of [holder['tool_calls'] ?? [], holder['function_call'] ?? []].flat() as Record<string, unknown>[]) {
    const { name, arguments: args } = (call['function'] ?? call) as { name?: unknown; arguments?: unknown };
    for (const part of [name, args]) if (typeof part === 'string') text += part;
  }
  return text;
}
