import { only, TEXT, TEXT_OR_NULL, TOOL_NAME, unsent } from './schema-builders';

export const MAX_TOOLS = 1_024;
const TOOL_CHOICES = ['none', 'auto', 'required'] as const;
const TOOL_TYPES = ['function', 'custom'] as const;

/** Members that backends and clients add to a called function. They are accepted and not sent to backends. */
export const NOT_PASSED_ON_IN_FUNCTIONS = ['description', 'parsed_arguments', 'provider_specific_fields'] as const;
/** The same for the call itself. */
export const NOT_PASSED_ON_IN_CALLS = ['extra_content', 'provider_specific_fields'] as const;
const CALLED = { name: TEXT, arguments: TEXT };

/** A call of a function in an earlier answer. */
export const CALLED_FUNCTION = only(CALLED, ['name']);

/** A call of a tool in an earlier answer. */
export const TOOL_CALL = only({
  id: TEXT_OR_NULL,
  type: { type: 'string', enum: TOOL_TYPES },
  index: { type: ['integer', 'null'] },
  function: only({ ...CALLED, ...unsent(NOT_PASSED_ON_IN_FUNCTIONS) }, ['name']),
  custom: only({ name: TEXT, input: TEXT }, ['name']),
  ...unsent(NOT_PASSED_ON_IN_CALLS),
});

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
