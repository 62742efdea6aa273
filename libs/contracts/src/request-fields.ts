/**
 * The fields that backends read from a request beyond the documented ones. Checked twice: when `tollgate.yaml` lists
 * fields in a model's `passthrough`, and for every request.
 */

/** The request dialects of backends: which fields they know, and under which names. */
export const DIALECTS = ['openai', 'vllm', 'llamacpp', 'ollama', 'sglang', 'tgi'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** `any`: unknown, so the body must mean the same to all of them. `simulator`: the built-in one. */
export type BackendDialect = Dialect | 'any' | 'simulator';

/**
 * These fields change how a token is chosen. `reasoning_effort` and `verbosity` also change how many there are, within
 * the cap that is held. None changes what is counted or which model runs.
 */
const COMMON = [
  'chat_template_kwargs',
  'metadata',
  'min_p',
  'prompt_cache_key',
  'reasoning_effort',
  'repetition_penalty',
  'safety_identifier',
  'top_k',
  'verbosity',
];

/** The fields that reach a backend of each dialect when the model's `passthrough` is left out. */
export const DEFAULT_PASSTHROUGH: Readonly<Record<BackendDialect, readonly string[]>> = {
  any: COMMON,
  openai: ['metadata', 'prompt_cache_key', 'reasoning_effort', 'safety_identifier', 'verbosity'],
  vllm: [
    ...COMMON,
    'allowed_token_ids',
    'bad_words',
    'guided_choice',
    'guided_grammar',
    'guided_json',
    'guided_regex',
    'include_stop_str_in_output',
    'skip_special_tokens',
    'spaces_between_special_tokens',
    'stop_token_ids',
    'structured_outputs',
  ],
  llamacpp: [
    ...COMMON,
    'cache_prompt',
    'dry_allowed_length',
    'dry_base',
    'dry_multiplier',
    'dynatemp_exponent',
    'dynatemp_range',
    'grammar',
    'json_schema',
    'mirostat',
    'mirostat_eta',
    'mirostat_tau',
    'reasoning_format',
    'repeat_last_n',
    'repeat_penalty',
    'top_n_sigma',
    'typical_p',
    'xtc_probability',
    'xtc_threshold',
  ],
  ollama: ['reasoning_effort'],
  sglang: [
    ...COMMON,
    'ebnf',
    'regex',
    'separate_reasoning',
    'skip_special_tokens',
    'spaces_between_special_tokens',
    'stop_token_ids',
    'stream_reasoning',
  ],
  tgi: ['top_k', 'repetition_penalty', 'typical_p'],
  simulator: [...COMMON, 'simulator'],
};

/** The passed-on fields that no template renders, so they are not part of the prompt. */
export const NEVER_RENDERED: ReadonlySet<string> = new Set([
  'metadata',
  'prompt_cache_key',
  'safety_identifier',
  'simulator',
]);

/** Fields that never reach a backend, whatever `passthrough` says, with the reason that the 400 states. */
export const NEVER_PASSED_ON: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'it changes how much is generated': [
      'adaptive_thinking_budget',
      'best_of',
      'continue_final_message',
      'extra_body',
      'extra_args',
      'early_stopping',
      'ignore_eos',
      'length_penalty',
      'max_length',
      'max_thinking_tokens',
      'max_new_tokens',
      'max_output_tokens',
      'max_tokens_to_sample',
      'min_length',
      'min_new_tokens',
      'min_tokens',
      'n_cmpl',
      'n_indent',
      'n_keep',
      'n_predict',
      'n_probs',
      'new_tokens',
      'num_beams',
      'num_ctx',
      'num_keep',
      'num_predict',
      'num_return_sequences',
      'options',
      'prediction',
      'sampling_params',
      'parameters',
      'stream_interval',
      'speculative',
      'thinking',
      'thinking_budget',
      'thinking_token_budget',
      'use_beam_search',
    ],
    'it changes which model runs, or where': [
      'adapter_id',
      'adapters',
      'data_parallel_rank',
      'engine',
      'id_slot',
      'keep_alive',
      'lora',
      'lora_adapters',
      'lora_id',
      'lora_name',
      'lora_path',
      'lora_request',
      'model_id',
      'model_name',
      'models',
      'priority',
      'provider',
      'route',
      'service_tier',
      'slot_id',
    ],
    'it changes what is counted': [
      'add_generation_prompt',
      'add_special_tokens',
      'chat_template',
      'documents',
      'echo',
      'image_data',
      'images',
      'input',
      'input_embeds',
      'input_extra',
      'input_ids',
      'input_prefix',
      'input_suffix',
      'inputs',
      'logits_processors',
      'custom_logit_processor',
      'custom_params',
      'modalities',
      'mm_processor_kwargs',
      'prompt',
      'prompt_embeds',
      'prompt_logprobs',
      'prompt_token_ids',
      'raw',
      'return_full_text',
      'return_hidden_states',
      'return_prompt_text',
      'return_token_ids',
      'return_tokens_as_token_ids',
      'session_params',
      'system',
      'template',
      'text',
      'token_ids',
      'token_ids_logprob',
      'truncate_prompt_tokens',
    ],
    'it makes a backend fetch or store something': [
      'audio',
      'bootstrap_host',
      'bootstrap_port',
      'bootstrap_room',
      'cache_salt',
      'conversation',
      'ec_transfer_params',
      'file_ids',
      'kv_transfer_params',
      'media_io_kwargs',
      'mcp_servers',
      'nvext',
      'plugins',
      'previous_response_id',
      'store',
      'tool_server',
      'transforms',
      'vllm_xargs',
      'web_search_options',
    ],
  }).flatMap(([why, names]) => names.map((name) => [name, why] as const)),
);

/** Values (as JSON) with which clients request the default behaviour. Such a field is treated as absent. */
export const WITHOUT_EFFECT: ReadonlyMap<string, readonly string[]> = new Map([
  ['add_generation_prompt', ['true']],
  ['continue_final_message', ['false']],
  ['ignore_eos', ['false']],
  ['min_tokens', ['0']],
  ['modalities', ['["text"]']],
  ['service_tier', ['"auto"', '"default"']],
  ['store', ['false']],
  ['use_beam_search', ['false']],
]);

/** The fields of the inference API itself. The gateway validates their values. */
export const DOCUMENTED_FIELDS: ReadonlySet<string> = new Set([
  'best_of',
  'dimensions',
  'echo',
  'encoding_format',
  'frequency_penalty',
  'function_call',
  'functions',
  'input',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'messages',
  'model',
  'n',
  'parallel_tool_calls',
  'presence_penalty',
  'prompt',
  'response_format',
  'seed',
  'stop',
  'stream',
  'stream_options',
  'suffix',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
]);

/** No field of a backend has a longer name. Longer ones are refused, whatever a parser takes them for. */
export const MAX_FIELD_NAME_CHARS = 100;

/**
 * Maps names that some parser treats as equal to the same text: case as Unicode folds it (including `ſ` and the Kelvin
 * sign), full-width forms, and the separators that camel case omits. Throws RangeError above MAX_FIELD_NAME_CHARS:
 * normalising takes quadratic time in a run of combining marks.
 */
export function foldFieldName(name: string): string {
  if (name.length > MAX_FIELD_NAME_CHARS) throw new RangeError('the name of a field is too long to be folded');
  return name
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replace(/[\s_-]/g, '');
}

const FOLDED = new Map([...DOCUMENTED_FIELDS, ...NEVER_PASSED_ON.keys()].map((name) => [foldFieldName(name), name]));

/**
 * The documented or forbidden field that some parser takes `name` for. Undefined: none other than `name` itself. Throws
 * as `foldFieldName`.
 */
export function fieldTakenFor(name: string): string | undefined {
  const field = FOLDED.get(foldFieldName(name));
  return field === name ? undefined : field;
}

/** Why a field may not be in a `passthrough` list. Null: it may. */
export function validatePassedThrough(name: string): string | null {
  if (name.length > MAX_FIELD_NAME_CHARS)
    return `"${name.slice(0, MAX_FIELD_NAME_CHARS)}…" is longer than ${MAX_FIELD_NAME_CHARS} characters`;
  if (DOCUMENTED_FIELDS.has(name)) return `"${name}" is a documented field, which always goes on as checked`;
  const why = NEVER_PASSED_ON.get(name);
  if (why !== undefined) return `"${name}" is never passed on: ${why}`;
  const taken = fieldTakenFor(name);
  return taken === undefined ? null : `"${name}" is never passed on: a backend can take it for "${taken}"`;
}
