import { copiesIn, type Copies } from './reasoning-copies';

/** Members of a message, a delta or a legacy choice that are usually plain text. */
export const TEXT_FIELDS: ReadonlySet<string> = new Set(
  'content text reasoning_content reasoning reasoning_text thinking refusal'.split(' '),
);

/** The output of a choice. */
export interface Output {
  text: string;
  /** The least number of tokens that it counts as. 0: the choice delivers nothing. */
  least: number;
  /**
   * The number of marks: values that are not output, such as finish reasons, filter verdicts and indexes. A limited
   * number is free (chunk-translator.ts).
   */
  marks: number;
  /** The number of tool calls that begin in it. */
  calls: number;
  /** A part of it is reasoning. */
  reasons: boolean;
}

const names = (list: string) => new Set(list.split(' '));
/** Members of a message or a delta that have reasoning, all of it or a summary. */
const REASONING = names('reasoning reasoning_content reasoning_text thinking reasoning_details thinking_blocks');
/** A short word. Longer values and those with blanks count as text. */
const WORD = /^[\w.:-]{1,64}$/;
/** The longest token of all encodings, a run of blanks. A longer token in `logprobs` counts as text. */
const MAX_TOKEN_CHARS = 128;
/** Characters and numbers in `logprobs` per token. 20 alternatives of five letters with their bytes are 250. */
const LOGPROBS_PER_TOKEN = 512;
/**
 * Free members and marks of a choice: a message with every filter's verdict has this many. Beyond that, PARTS_PER_TOKEN
 * of them count as one token.
 */
const FREE_PARTS = 64;
const PARTS_PER_TOKEN = 8;
/** Free words beside the message: engines give the finish reason under several names. */
const FREE_WORDS = 4;

const ROLES = names('assistant user system developer tool function model');
/** Values of `type` that engines use. */
const TYPES = names(
  'function custom text thinking redacted_thinking output_text refusal reasoning reasoning.text reasoning.summary ' +
    'reasoning.encrypted summary_text audio',
);
const SEVERITIES = names('safe low medium high');
/**
 * Members for structure, finish reasons and verdicts. Their value is free if it is one short word, a number or a
 * boolean.
 */
const STRUCTURE = names(
  'index type id status format channel object created created_at expires_at start_index end_index finish_reason ' +
    'native_finish_reason stop_reason matched_stop seed severity filtered detected ' +
    'check_offset start_offset end_offset',
);
/** Known member names. Any other name counts as text, because it could carry output. */
const KNOWN: ReadonlySet<string> = new Set([
  ...STRUCTURE,
  ...TEXT_FIELDS,
  ...names(
    'delta message role logprobs token_ids prompt_token_ids tool_calls tool_call_id function_call function custom ' +
      'name arguments input audio data transcript images image_url url annotations citations parts summary signature ' +
      'thinking_blocks reasoning_details reasoning_signature reasoning_opaque encrypted_content cache_control ' +
      'provider_specific_fields extra_content hidden_states routed_experts error content_filter_results ' +
      'content_filter_result content_filter_offsets hate self_harm sexual violence jailbreak profanity ' +
      'protected_material_text protected_material_code indirect_attack ungrounded_material custom_blocklists ' +
      'custom_topics details',
  ),
]);
const KNOWN_OF_LOGPROBS = names(
  'content refusal reasoning_content tokens token_logprobs top_logprobs text_offset token logprob bytes id',
);
const LISTS_OF_LOGPROBS = ['content', 'refusal', 'reasoning_content', 'tokens'];

/**
 * The output of a choice. All text in its message, delta or legacy `text` counts, at any depth and under any name.
 * Numbers and unknown names count too. Only a few known structural members are free, if each is one short word. So are
 * copies of the reasoning (reasoning-copies.ts), and of a chunk's content. Iterative, in linear time.
 */
export function outputOf(choice: Record<string, unknown>): Output {
  const gatherer = new Gatherer();
  const { delta } = choice;
  for (const name of Object.keys(choice)) {
    const value = choice[name];
    if (name === 'index' && typeof value === 'number') continue;
    // Together repeats the content of each chunk under this name.
    if (name === 'text' && isObject(delta) && delta['content'] === value) continue;
    if ((name === 'delta' || name === 'message') && isObject(value)) gatherer.holder(value);
    else if (name === 'logprobs' && isObject(value)) gatherer.logprobs(value);
    else if (name === 'token_ids' && Array.isArray(value)) gatherer.tokenIds(value);
    else gatherer.member(name, value, false);
  }
  return gatherer.output;
}

/** The tool calls that begin in a message or a delta. A later chunk of a call has no name. */
function callsIn({ tool_calls: calls, function_call: older }: Record<string, unknown>): number {
  if (calls == null && older == null) return 0;
  const all: unknown[] = [...(Array.isArray(calls) ? (calls as unknown[]) : []), { function: older }];
  return all.filter((call) => isObject(call) && (isNamed(call['function']) || isNamed(call['custom']))).length;
}

function isNamed(called: unknown): boolean {
  return isObject(called) && typeof called['name'] === 'string' && called['name'] !== '';
}

/**
 * Removes members with unknown names and no output: engines add them to each chunk, and their names would count as
 * text. Returns the same object if there are none.
 */
export function withoutEmptyUnknown(choice: Record<string, unknown>): Record<string, unknown> {
  let lean = without(choice);
  for (const name of ['delta', 'message']) {
    const holder = lean[name];
    if (!isObject(holder)) continue;
    const leanHolder = without(holder);
    if (leanHolder !== holder) lean = { ...lean, [name]: leanHolder };
  }
  return lean;
}

function without(members: Record<string, unknown>): Record<string, unknown> {
  let isLean = true;
  for (const name in members) isLean &&= KNOWN.has(name) || !hasNoOutput(members[name]);
  return isLean
    ? members
    : Object.fromEntries(Object.entries(members).filter(([name, value]) => KNOWN.has(name) || !hasNoOutput(value)));
}

class Gatherer {
  private text = '';
  /** Each is at least one token, even beside other text. */
  private numbers = 0;
  private words = 0;
  private wordsBeside = 0;
  /** Tokens that `logprobs` and `token_ids` list. Both describe the same tokens. */
  private entries = 0;
  private members = 0;
  private marks = 0;
  private calls = 0;
  private reasons = false;
  /** Of the message or delta that is gathered. */
  private copies: Copies | null = null;

  get output(): Output {
    const parts = Math.ceil(Math.max(0, this.members + this.marks - FREE_PARTS) / PARTS_PER_TOKEN);
    const beside = this.wordsBeside - FREE_WORDS;
    const least = Math.max(this.entries, this.numbers, this.words, beside, parts, this.text === '' ? 0 : 1);
    return { text: this.text, least, marks: this.marks, calls: this.calls, reasons: this.reasons };
  }

  holder(value: Record<string, unknown>): void {
    const copies = copiesIn(value);
    this.copies = copies;
    this.calls += callsIn(value);
    for (const name of Object.keys(value)) {
      if (REASONING.has(name) && !hasNoOutput(value[name])) this.reasons = true;
      if (copies?.get(value)?.has(name)) continue;
      if (name === 'role' && ROLES.has(value[name] as string)) continue;
      if (name === 'index' && typeof value[name] === 'number') continue;
      if (name === 'token_id' && Number.isInteger(value[name])) this.tokenIds([value[name]]);
      else this.member(name, value[name], true);
    }
  }

  /** Gathers a member and everything in it, at any depth. */
  member(name: string, root: unknown, inside: boolean): void {
    const open: unknown[] = [];
    this.open(name, root, inside, open);
    // Terminates: each value of the tree is taken once.
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string' && value !== '') this.text += value;
      else if (typeof value === 'number') this.number(value);
      else if (hasNoOutput(value)) this.marks += 1;
      else if (Array.isArray(value)) for (let i = value.length - 1; i >= 0; i -= 1) open.push(value[i]);
      else {
        const members = value as Record<string, unknown>;
        const within = Object.keys(members);
        const copied = this.copies?.get(members);
        for (let i = within.length - 1; i >= 0; i -= 1)
          if (copied?.has(within[i]!)) this.members += 1;
          else this.open(within[i]!, members[within[i]!], inside, open);
      }
    }
  }

  /** Each entry is at least one token. Entries repeat the choice's text, so their text is not added to it. */
  logprobs(root: Record<string, unknown>): void {
    let entries = 0;
    for (const list of LISTS_OF_LOGPROBS) if (Array.isArray(root[list])) entries += root[list].length;
    let units = 0;
    const open: unknown[] = [root];
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string') units += this.token(value);
      else if (!isObject(value)) units += Array.isArray(value) ? 0 : 1;
      else {
        for (const name of Object.keys(value)) {
          if (!KNOWN_OF_LOGPROBS.has(name)) units += this.token(name);
          const inner = value[name];
          if (inner === null || hasNoOutput(inner)) this.marks += 1;
          else open.push(inner);
        }
      }
      if (Array.isArray(value)) for (const inner of value) open.push(inner);
    }
    this.entries = Math.max(this.entries, entries, Math.ceil(units / LOGPROBS_PER_TOKEN));
  }

  tokenIds(ids: unknown[]): void {
    if (ids.every((id) => Number.isInteger(id))) this.entries = Math.max(this.entries, ids.length);
    else this.member('token_ids', ids, true);
  }

  private open(name: string, value: unknown, inside: boolean, open: unknown[]): void {
    this.members += 1;
    if (!KNOWN.has(name)) this.text += name;
    if (hasNoOutput(value)) this.marks += typeof value === 'boolean' ? 1 : 0;
    else if (!this.isStructure(name, value, inside)) open.push(value);
  }

  private isStructure(name: string, value: unknown, inside: boolean): boolean {
    if (!STRUCTURE.has(name) || (typeof value !== 'number' && (typeof value !== 'string' || !WORD.test(value))))
      return false;
    this.marks += 1;
    if (typeof value === 'number' || (name === 'type' && TYPES.has(value))) return true;
    if (name === 'severity' && SEVERITIES.has(value)) return true;
    if (inside) this.words += 1;
    else this.wordsBeside += 1;
    return true;
  }

  private number(value: number): void {
    this.numbers += 1;
    this.text += String(value);
  }

  private token(token: string): number {
    if (token.length > MAX_TOKEN_CHARS) this.text += token;
    return token.length;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is null, an empty string, list or object, or a boolean. */
function hasNoOutput(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value == null || value === '' || typeof value === 'boolean';
  for (const _ in value) return false;
  return true;
}
