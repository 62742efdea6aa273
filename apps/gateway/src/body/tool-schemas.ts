import { only, TEXT, TEXT_OR_NULL, TOOL_NAME } from './schema-builders';

export const MAX_TOOLS = 1_024;
const TOOL_CHOICES = ['none', 'auto', 'required'] as const;
export const TOOL_TYPES = ['function', 'custom'] as const;

/** Members that the clients' `parse()` adds to a called function. They are accepted and not sent to backends. */
export const NOT_PASSED_ON_IN_CALLS = ['parsed_arguments'] as const;
const CALLED = { name: TEXT, arguments: TEXT };

/** A call of a function in an earlier answer. */
export const CALLED_FUNCTION = only(CALLED, ['name']);

/** The same in `tool_calls`, where clients add members of their own. */
export const FUNCTION_OF_CALL = only(
  {
    ...CALLED,
    ...Object.fromEntries(NOT_PASSED_ON_IN_CALLS.map((name) => [name, { description: 'Accepted. Not passed on.' }])),
  },
  ['name'],
);

/** The declaration of a function. */
export const FUNCTION = only(
  {
    name: TOOL_NAME,
    description: TEXT_OR_NULL,
    parameters: { type: ['object', 'null'] },
    strict: { type: ['boolean', 'null'] },
  },
  ['name'],
);

/** The declaration of a tool. */
export const TOOL = {
  ...only(
    {
      type: { type: 'string', enum: TOOL_TYPES },
      cache_control: { description: 'Accepted without effect.' },
      function: FUNCTION,
      custom: only({ name: TOOL_NAME, description: TEXT_OR_NULL, format: { type: ['object', 'null'] } }, ['name']),
    },
    ['type'],
  ),
  if: { required: ['type'], properties: { type: { const: 'function' } } },
  // Names the member too, because linters of the document ask for it.
  then: { required: ['function'], properties: { function: {} } },
  else: {
    if: { required: ['type'], properties: { type: { const: 'custom' } } },
    then: { required: ['custom'], properties: { custom: {} } },
  },
};

export const TOOL_CHOICE = {
  ...only(
    {
      type: { type: 'string', enum: TOOL_TYPES },
      function: only({ name: TOOL_NAME }),
      custom: only({ name: TOOL_NAME }),
    },
    ['type'],
  ),
  type: ['string', 'object', 'null'],
  if: { type: 'string' },
  then: { enum: TOOL_CHOICES },
  description: `One of ${TOOL_CHOICES.join(', ')}, or the tool to call.`,
};
