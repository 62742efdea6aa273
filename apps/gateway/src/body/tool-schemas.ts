import { only, TEXT, TEXT_OR_NULL, TOOL_NAME } from './schema-builders';

export const MAX_TOOLS = 1_024;
const TOOL_CHOICES = ['none', 'auto', 'required'] as const;
export const TOOL_TYPES = ['function', 'custom'] as const;

/** A call of a function in an earlier answer. */
export const CALLED_FUNCTION = only({ name: TEXT, arguments: TEXT }, ['name']);

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
