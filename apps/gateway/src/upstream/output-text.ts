/** Members of a message, a delta or a legacy choice that are plain text as a rule. */
export const TEXT_FIELDS: ReadonlySet<string> = new Set(
  'content text reasoning_content reasoning reasoning_text thinking refusal'.split(' '),
);

/** What a choice delivers: all the text in it, and so many tokens at the least (0: nothing is delivered). */
export interface Output {
  text: string;
  least: number;
  /** What it says beside that: an end, a verdict, a place. Free, but not without end (chunk-translator.ts). */
  marks: number;
}

const names = (list: string) => new Set(list.split(' '));
/** Text is not hidden in what is longer, or has blanks. */
const WORD = /^[\w.:-]{1,64}$/;
/** Of `logprobs`: the longest token of all encodings, and they are blanks. */
const MAX_TOKEN_CHARS = 128;
/**
 * Letters and numbers of `logprobs` that belong to a token: 20 alternatives with five letters and their bytes are 250.
 */
const LOGPROBS_PER_TOKEN = 512;
/**
 * Members and marks of a choice that are free, as many as a message with every filter's verdict has; then they are a
 * token each so many.
 */
const FREE_PARTS = 64;
const PARTS_PER_TOKEN = 8;
/** Words beside the message: the reason for its end, by several names. */
const FREE_WORDS = 4;

const ROLES = names('assistant user system developer tool function model');
/** Words that engines choose from a few. */
const TYPES = names(
  'function custom text thinking redacted_thinking output_text refusal reasoning reasoning.text reasoning.summary reasoning.encrypted summary_text audio',
);
const SEVERITIES = names('safe low medium high');
/** They say what belongs where, how something ended or was judged: free as one short word, a number or a boolean. */
const STRUCTURE = names(
  'index type id status format object created created_at expires_at start_index end_index finish_reason native_finish_reason stop_reason matched_stop seed severity filtered detected check_offset start_offset end_offset',
);
/** Names that are known, whatever is in them: all others are text themselves. */
const KNOWN: ReadonlySet<string> = new Set([
  ...STRUCTURE,
  ...TEXT_FIELDS,
  ...names(
    'delta message role logprobs token_ids prompt_token_ids tool_calls tool_call_id function_call function custom name arguments input audio data transcript images image_url url annotations citations parts summary signature thinking_blocks reasoning_details reasoning_signature reasoning_opaque encrypted_content cache_control provider_specific_fields extra_content hidden_states routed_experts error content_filter_results content_filter_result content_filter_offsets hate self_harm sexual violence jailbreak profanity protected_material_text protected_material_code custom_blocklists',
  ),
]);
const KNOWN_OF_LOGPROBS = names(
  'content refusal reasoning_content tokens token_logprobs top_logprobs text_offset token logprob bytes id',
);
const LISTS_OF_LOGPROBS = ['content', 'refusal', 'reasoning_content', 'tokens'];

/**
 * Everything in a choice of an answer that counts as output: the texts of its message, delta or legacy `text`, and of
 * whatever stands in them by whatever name, numbers and unknown names too. Only known members that say what belongs
 * where are free, as long as they are one short word each, and few. Iterative, linear in what is there.
 */
export function outputOf(choice: Record<string, unknown>): Output {
  const gatherer = new Gatherer();
  for (const name of Object.keys(choice)) {
    const value = choice[name];
    if (name === 'index' && typeof value === 'number') continue;
    if ((name === 'delta' || name === 'message') && isObject(value)) gatherer.holder(value);
    else if (name === 'logprobs' && isObject(value)) gatherer.logprobs(value);
    else if (name === 'token_ids' && Array.isArray(value)) gatherer.tokenIds(value);
    else gatherer.member(name, value, false);
  }
  return gatherer.output;
}

/**
 * The choice without members of unknown names that say nothing: engines add such to each chunk, and a name can be text.
 * The same where there is none.
 */
export function withoutHollow(choice: Record<string, unknown>): Record<string, unknown> {
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
  for (const name in members) isLean &&= KNOWN.has(name) || !isHollow(members[name]);
  return isLean
    ? members
    : Object.fromEntries(Object.entries(members).filter(([name, value]) => KNOWN.has(name) || !isHollow(value)));
}

class Gatherer {
  private text = '';
  /** A token each: they may stand beside their text. */
  private numbers = 0;
  private words = 0;
  private wordsBeside = 0;
  /** What `logprobs` and `token_ids` say, of the same tokens. */
  private entries = 0;
  private members = 0;
  private marks = 0;

  get output(): Output {
    const parts = Math.ceil(Math.max(0, this.members + this.marks - FREE_PARTS) / PARTS_PER_TOKEN);
    const beside = this.wordsBeside - FREE_WORDS;
    const least = Math.max(this.entries, this.numbers, this.words, beside, parts, this.text === '' ? 0 : 1);
    return { text: this.text, least, marks: this.marks };
  }

  holder(value: Record<string, unknown>): void {
    for (const name of Object.keys(value)) {
      if (name === 'role' && ROLES.has(value[name] as string)) continue;
      if (name === 'index' && typeof value[name] === 'number') continue;
      this.member(name, value[name], true);
    }
  }

  /** A member and everything in it, however deep. */
  member(name: string, root: unknown, inside: boolean): void {
    const open: unknown[] = [];
    this.open(name, root, inside, open);
    // Ends: each value of a tree is taken once.
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string' && value !== '') this.text += value;
      else if (typeof value === 'number') this.number(value);
      else if (isHollow(value)) this.marks += 1;
      else if (Array.isArray(value)) for (let i = value.length - 1; i >= 0; i -= 1) open.push(value[i]);
      else {
        const members = value as Record<string, unknown>;
        const within = Object.keys(members);
        for (let i = within.length - 1; i >= 0; i -= 1) this.open(within[i]!, members[within[i]!], inside, open);
      }
    }
  }

  /**
   * An entry is a token. Its text is the choice's text, which is counted; without that it is the entries that count.
   */
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
          if (inner === null || isHollow(inner)) this.marks += 1;
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
    if (isHollow(value)) this.marks += typeof value === 'boolean' ? 1 : 0;
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

function isHollow(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value == null || value === '' || typeof value === 'boolean';
  for (const _ in value) return false;
  return true;
}
