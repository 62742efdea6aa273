import { SchemaError } from './schema-error';
import type { Random } from './random';

const MAX_PATTERN_CHARS = 1_000;
const MAX_TEXT_CHARS = 10_000;

const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).sort(
  (a, b) => Number(/\w/.test(b)) - Number(/\w/.test(a)),
);
/** Characters that need a backslash to stand for themselves. */
const SYNTAX = '^$\\.*+?()[]{}|/';
const CONTROLS: Record<string, string> = { n: '\n', r: '\r', t: '\t' };
const SETS: Record<string, (character: string) => boolean> = {
  d: (character) => /\d/.test(character),
  D: (character) => /\D/.test(character),
  w: (character) => /\w/.test(character),
  W: (character) => /\W/.test(character),
  s: (character) => /\s/.test(character),
  S: (character) => /\S/.test(character),
};
/** A count of more digits is beyond `MAX_TEXT_CHARS` in any case. */
const COUNTS = /\{(\d{1,6})(?:(,)(\d{1,6})?)?\}/y;

/** One character of a text: itself, or the printable characters that it may be. */
type Atom = string | readonly string[];

/**
 * A text for a pattern of `^`, literal characters, `.`, `\d`, `\w`, `\s`, `[…]` with `{m,n}`, `+`, `*`, `?`, `$`. It
 * repeats each character as rarely as the pattern allows, so it matches by construction. The pattern comes from a
 * client and never becomes a regular expression, because one that backtracks can take forever. Throws `SchemaError`.
 */
export function textMatching(pattern: string, random: Random): string {
  if (pattern.length > MAX_PATTERN_CHARS)
    throw new SchemaError(`a pattern of more than ${MAX_PATTERN_CHARS} characters is not supported`);
  const reader = new PatternReader(pattern);
  let text = '';
  while (!reader.ended) {
    const atom = reader.atom();
    const times = reader.leastTimes();
    if (times === 0) continue;
    const character = typeof atom === 'string' ? atom : atom[random.below(atom.length)];
    if (character === undefined) return reader.refuse();
    if (text.length + character.length * times > MAX_TEXT_CHARS)
      throw new SchemaError(`a string of more than ${MAX_TEXT_CHARS} characters`);
    text += character.repeat(times);
  }
  return text;
}

/** Reads a pattern once from its start to its end. Each part has the meaning of JavaScript's `u` flag. */
class PatternReader {
  #at: number;

  constructor(private readonly pattern: string) {
    this.#at = pattern.startsWith('^') ? 1 : 0;
  }

  get ended(): boolean {
    const left = this.pattern.length - this.#at;
    return left === 0 || (left === 1 && this.pattern.endsWith('$'));
  }

  atom(): Atom {
    const character = this.#next();
    if (character === '[') return this.#class();
    if (character === '.') return PRINTABLE;
    if (character !== '\\') return SYNTAX.includes(character) && character !== '/' ? this.refuse() : character;
    const escaped = this.#escaped('');
    return typeof escaped === 'string' ? escaped : PRINTABLE.filter(escaped);
  }

  /** Reads the quantifier that follows, if any. */
  leastTimes(): number {
    const next = this.pattern[this.#at];
    if (next === '+' || next === '*' || next === '?') {
      this.#at++;
      return next === '+' ? 1 : 0;
    }
    if (next !== '{') return 1;
    COUNTS.lastIndex = this.#at;
    const counts = COUNTS.exec(this.pattern);
    if (!counts) return this.refuse();
    const [whole, least, , most] = counts;
    if (most !== undefined && Number(most) < Number(least)) return this.refuse();
    this.#at += whole.length;
    return Number(least);
  }

  refuse(): never {
    throw new SchemaError(`pattern ${this.pattern} is not supported`);
  }

  /** Reads the rest of `[…]`. */
  #class(): readonly string[] {
    const negated = this.pattern[this.#at] === '^';
    if (negated) this.#at++;
    const members: ((character: string) => boolean)[] = [];
    for (let first = this.#member(); first !== null; first = this.#member()) {
      if (this.pattern[this.#at] !== '-' || this.pattern[this.#at + 1] === ']') {
        members.push(typeof first === 'string' ? (character) => character === first : first);
        continue;
      }
      this.#at++;
      const last = this.#member();
      if (typeof first !== 'string' || typeof last !== 'string') return this.refuse();
      const [from, to] = [first.codePointAt(0)!, last.codePointAt(0)!];
      if (from > to) return this.refuse();
      members.push((character) => character.charCodeAt(0) >= from && character.charCodeAt(0) <= to);
    }
    return PRINTABLE.filter((character) => members.some((member) => member(character)) !== negated);
  }

  /** One character or set of characters of a class; null at its end. */
  #member(): string | ((character: string) => boolean) | null {
    const character = this.#next();
    if (character === ']') return null;
    return character === '\\' ? this.#escaped('-') : character;
  }

  /** Reads what follows a backslash. `more` are characters that only here may have one. */
  #escaped(more: string): string | ((character: string) => boolean) {
    const character = this.#next();
    if (SYNTAX.includes(character) || more.includes(character)) return character;
    return own(CONTROLS, character) ?? own(SETS, character) ?? this.refuse();
  }

  /** The next code point. A pattern that ends too early is not supported. */
  #next(): string {
    const point = this.pattern.codePointAt(this.#at);
    if (point === undefined) return this.refuse();
    const character = String.fromCodePoint(point);
    this.#at += character.length;
    return character;
  }
}

function own<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
