/** Members of a message, a delta or a legacy choice that are plain text as a rule. */
export const TEXT_FIELDS: ReadonlySet<string> = new Set(
  'content text reasoning_content reasoning reasoning_text thinking refusal'.split(' '),
);

/** What a choice delivers: all the text in it, and so many tokens at the least (0: nothing is delivered). */
export interface Output {
  text: string;
  least: number;
}

/** Text is not hidden in what is longer, or has blanks. */
const WORD = /^[\w.:-]{1,64}$/;
/** Encrypted reasoning's proof of origin: as long as its ciphers are, and no text. It counts as the chunk that it is. */
const SIGNATURE = /^[A-Za-z0-9+/=_-]{1,8192}$/;
/** A name of a member; another one is text. */
const NAME = /^[A-Za-z_][\w.-]{0,39}$/;
/** One token of `logprobs`; the longest of all encodings has 128, and they are blanks. */
const MAX_TOKEN_CHARS = 128;

const ROLES = new Set(['assistant', 'user', 'system', 'developer', 'tool', 'function', 'model']);
const TYPES = new Set(
  'function custom text thinking redacted_thinking output_text refusal reasoning reasoning.text reasoning.summary reasoning.encrypted summary_text audio'.split(
    ' ',
  ),
);
/** Of what is inside a delta: says what belongs where, and nothing else. */
const STRUCTURE = new Set(
  'index type id status format object created created_at expires_at start_index end_index signature cache_control'.split(
    ' ',
  ),
);
const STRUCTURE_OF_CHOICE = new Set(
  'index finish_reason native_finish_reason stop_reason matched_stop seed content_filter_results content_filter_result content_filter_offsets'.split(
    ' ',
  ),
);

/**
 * Everything in a choice of an answer that counts as output: the texts of its message, delta or legacy `text`, and of whatever stands in them by whatever name; what is no text
 * counts as one token at the least. Only known members that say what belongs where are free, as long as they are short words. Iterative, linear in what is there.
 */
export function outputOf(choice: Record<string, unknown>): Output {
  const gatherer = new Gatherer();
  for (const name in choice) {
    const value = choice[name];
    if (value === null || value === '' || value === false) continue;
    if (name === 'delta' || name === 'message') gatherer.holder(value);
    else if (name === 'logprobs') gatherer.logprobs(value);
    else if (name === 'token_ids') gatherer.tokenIds(value);
    else if (STRUCTURE_OF_CHOICE.has(name)) gatherer.words(value);
    else gatherer.member(name, value);
  }
  return gatherer.output;
}

class Gatherer {
  private text = '';
  private numbers = 0;
  /** What `logprobs` and `token_ids` say, of the same tokens. */
  private entries = 0;
  private delivers = false;

  get output(): Output {
    const least = Math.max(this.entries, this.numbers, this.delivers || this.text !== '' ? 1 : 0);
    return { text: this.text, least };
  }

  holder(value: unknown): void {
    if (typeof value !== 'object' || value === null) return this.all(value);
    for (const [name, inner] of Object.entries(value)) {
      if (name === 'role' && ROLES.has(inner as string)) continue;
      if (name === 'index' && typeof inner === 'number') continue;
      this.member(name, inner);
    }
  }

  member(name: string, value: unknown): void {
    if (isEmpty(value)) return;
    if (!NAME.test(name)) this.text += name;
    this.all(value);
  }

  /** Every string and number, however deep. */
  all(root: unknown): void {
    const open: unknown[] = [root];
    // Ends: each value of a tree is taken once.
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string') this.text += value;
      else if (typeof value === 'number') this.numbers += 1;
      else if (typeof value !== 'object' || value === null) continue;
      else if (Array.isArray(value)) for (let i = value.length - 1; i >= 0; i -= 1) open.push(value[i]);
      else this.members(value as Record<string, unknown>, open);
    }
  }

  /** Short words, as the backend's own verdicts are; longer ones are text. */
  words(root: unknown): void {
    const open: unknown[] = [root];
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string' && !WORD.test(value) && value.trim() !== '') this.text += value;
      if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) open.push(inner);
    }
  }

  /** An entry is a token. Its text is the choice's text, which is counted; without that it is the entries that count. */
  logprobs(root: unknown): void {
    if (typeof root !== 'object' || root === null) return this.all(root);
    const { content, refusal, tokens } = root as Record<string, unknown>;
    let entries = 0;
    for (const list of [content, refusal, tokens]) if (Array.isArray(list)) entries += list.length;
    this.entries = Math.max(this.entries, entries);
    const open: unknown[] = [root];
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string' && value.length > MAX_TOKEN_CHARS) this.text += value;
      if (typeof value !== 'object' || value === null) continue;
      for (const name in value) {
        if (name.length > MAX_TOKEN_CHARS) this.text += name;
        open.push((value as Record<string, unknown>)[name]);
      }
    }
  }

  tokenIds(value: unknown): void {
    if (Array.isArray(value) && value.every((id) => typeof id === 'number'))
      this.entries = Math.max(this.entries, value.length);
    else this.all(value);
  }

  private members(value: Record<string, unknown>, open: unknown[]): void {
    const names = Object.keys(value);
    for (let i = names.length - 1; i >= 0; i -= 1) {
      const name = names[i]!;
      const inner = value[name];
      if (isEmpty(inner) || this.isStructure(name, inner)) continue;
      if (!NAME.test(name)) this.text += name;
      open.push(inner);
    }
  }

  private isStructure(name: string, value: unknown): boolean {
    if (!STRUCTURE.has(name)) return false;
    if (typeof value !== 'string') return typeof value === 'number';
    if (name === 'type' && TYPES.has(value)) return true;
    this.delivers = true;
    return WORD.test(value) || (name === 'signature' && SIGNATURE.test(value));
  }
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || typeof value === 'boolean';
}
