import { InferenceError } from '../errors';
import type { BodyRules } from './rules';
import type { ChatCompletionRequest } from './schemas';

/** What the schema allows, and the dialect of a backend of the model does not. */

/** Throws InferenceError invalid_value. */
export function refuseStops(stop: unknown, { id, maxStops }: BodyRules): void {
  if (Array.isArray(stop) && stop.length > maxStops)
    throw new InferenceError('invalid_value', {
      param: 'stop',
      message: `'stop' must have at most ${maxStops} entries for the model '${id}'.`,
    });
}

/** Throws InferenceError invalid_value for the first name with a dot. */
export function refuseToolNames(body: ChatCompletionRequest, { id, dottedNames }: BodyRules): void {
  if (dottedNames) return;
  for (const [param, name] of toolNames(body))
    if (name?.includes('.'))
      throw new InferenceError('invalid_value', {
        param,
        message: `'${param}' must not have dots for the model '${id}'.`,
      });
}

type Named = { name?: string };
type Tool = { function?: Named; custom?: Named };

/** The path and the name of each declared tool, and of that which must be called. */
function* toolNames(body: ChatCompletionRequest): Generator<[string, string | undefined]> {
  const { tools, functions, tool_choice: choice, function_call: call } = body;
  const namesOf = (tool: Tool, path: string): [string, string | undefined][] =>
    (['function', 'custom'] as const).map((kind) => [`${path}.${kind}.name`, tool[kind]?.name]);
  for (const [index, tool] of ((tools ?? []) as Tool[]).entries()) yield* namesOf(tool, `tools[${index}]`);
  for (const [index, { name }] of ((functions ?? []) as Named[]).entries()) yield [`functions[${index}].name`, name];
  if (typeof choice === 'object' && choice !== null) yield* namesOf(choice, 'tool_choice');
  if (typeof call === 'object' && call !== null) yield ['function_call.name', (call as Named).name];
}
