/**
 * What a backend says in its own words is made fit for others to read: for a client (`publicWords`), which must not
 * learn where and on what it runs, and for the operator's log (`operatorWords`), which must hold no key.
 */

const REMOVED = '[removed]';
const MAX_PUBLIC_CHARS = 300;
const MAX_LOGGED_CHARS = 300;
/** Looked at; what is beyond would not be shown anyway. */
const MAX_READ_CHARS = 4_000;
/** Names of models that are shorter ("a", "tiny") are replaced only where they stand alone. */
const MIN_DISTINCT_CHARS = 5;

/**
 * A pattern, and whether what it found is meant. Each begins where a run of its characters does, so that none takes
 * quadratic time.
 */
type Rule = [pattern: RegExp, isMeant?: (found: string) => boolean];

const URL_RULE: Rule = [/(?<![\w+.-])[\w+.-]*:\/\/[^\s"'<>]*/g];

/**
 * What follows "Bearer" or "password:", keys by their prefixes, and runs that are long and no word: base64, hex, JWT,
 * UUID.
 */
const SECRETS: readonly Rule[] = [
  [/\b(?:bearer|basic)\s+["']?[\w.~+/=-]{6,}/gi],
  [/\b(?:token|api[-_ ]?key[^:=]{0,20}|password|secret|authorization)["']?\s*[:=]\s*["']?[\w.~+/=-]{6,}/gi],
  [/(?<![A-Za-z0-9])(?:sk|pk|rk|hf|gh[a-z]|pat|glpat|xox[a-z]|nvapi|gsk|fma)[-_][\w.~+/=-]{6,}/gi],
  [/(?<![A-Za-z0-9])(?:AKIA|AIza|eyJ)[\w.~+/=-]{8,}/g],
  [/(?<![\w-])[0-9a-f][0-9a-f-]{15,}(?![\w-])/gi, (found) => /\d/.test(found)],
  [/[\w+/=.~-]{24,}/g, (found) => /\d/.test(found) && /[a-z]/i.test(found)],
  [/[A-Za-z0-9+/=]{32,}/g],
];

/** Where something is, in the network or in a file system. */
const PLACES: readonly Rule[] = [
  [/\bdata:[^\s"'<>]*/gi],
  [/(?<![^\s"'<>@])[^\s"'<>@]+@[^\s"'<>@]+/g],
  // Drive letters and shares, then paths from the root or of several parts, then names of source files.
  [/\b[a-z]:\\[^\s"'<>]*|\\\\[^\s"'<>]+/gi],
  [/(?<![\w)\]])(?:~|\.{1,2})?\/[\w.@%+~:-][^\s"'<>,;)]*/g],
  [/(?<![\w.@%+~-])[\w.@%+~-]+(?:\/[\w.@%+~-]+)+/g, (found) => /\/.*\/|\.\w{1,8}$/.test(found)],
  [
    /(?<![\w-])[\w-]+\.(?:py|pyc|js|mjs|cjs|ts|go|rs|cc|cpp|cu|cuh|hpp|so|dll|java|rb|c|h|gguf|safetensors|ya?ml|toml|sock)\b(?::\d+)*/gi,
  ],
  // Addresses: IPv4, IPv6, a name with a port.
  [/(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?!\d)/g],
  [/(?<![\w:])\[?(?:[0-9a-f]{1,4})?(?::[0-9a-f]{0,4}){2,8}(?:\.\d{1,3}){0,3}(?:%\w+)?\]?(?::\d+)?/gi],
  [/(?<![\w.-])[a-z0-9][\w.-]*:\d{2,5}\b/gi],
  [/\blocalhost\b/gi],
];
/** A name of several labels: a host, unless all its labels are names of fields (`messages.0.content`). */
const DOTTED = /(?<![\w.-])[\w-]+(?:\.[\w-]+)+(?![\w-])/g;
const ABBREVIATION = /^(?:[a-z]\.)+[a-z]$/i;
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/** What begins a stack trace: what follows is for nobody. */
const STACK =
  /Traceback \(most recent|\n\s*at [^\n]*[(:]|\n\s*File "|\bgoroutine \d+ \[|\bstack backtrace:|\bC\+\+ exception/;
/**
 * Formats (bidirectional controls, zero width), private use, lone surrogates, and controls but for tabs and ends of
 * lines.
 */
const INVISIBLE = /[\p{Cf}\p{Co}\p{Cs}]|(?![\t\n\r])\p{Cc}/gu;
const BLANKS = /[\s\p{Z}]+/gu;
/** Stands for the model while patterns are applied. Private use: no message has it any more. */
const MODEL = '\uE000';

export interface Known {
  /** Public id of the model. */
  model: string;
  /** What must not be shown by name: the model's names at its backends, their hosts. */
  innerModels: readonly string[];
  hosts: readonly string[];
  /** Names of the request's fields, at any depth. */
  fields: ReadonlySet<string>;
}

/**
 * A backend's message for a client: on one line, bounded, without places, keys and inner names. Null when nothing is
 * left that says something.
 */
export function publicWords(message: string, { model, innerModels, hosts, fields }: Known): string | null {
  let text = readable(message);
  const stack = STACK.exec(text);
  if (stack) text = text.slice(0, stack.index);
  for (const name of byLength([...innerModels, model])) text = replaceName(text, name, MODEL);
  for (const host of byLength(hosts)) text = replaceName(text, host, REMOVED);
  text = without([URL_RULE, ...SECRETS, ...PLACES], text).replace(DOTTED, (name) => {
    const isField = name.split('.').every((label) => fields.has(label) || /^\d{1,7}$/.test(label));
    return isField || NUMBER.test(name) || ABBREVIATION.test(name) ? name : REMOVED;
  });
  text = shortened(
    text.replaceAll(MODEL, () => model),
    MAX_PUBLIC_CHARS,
  );
  return /\p{L}/u.test(text.replaceAll(REMOVED, '')) ? text : null;
}

/** A backend's message for the log: on one line, bounded, without keys. */
export function operatorWords(message: string, secret: string | null): string {
  let text = readable(message);
  const key = secret?.replace(/^Bearer /, '') ?? '';
  if (key !== '') text = text.replaceAll(key, REMOVED);
  return shortened(without(SECRETS, text), MAX_LOGGED_CHARS);
}

/** A field of the request by the backend's name for it, or null where it is none: `messages[0].content`. */
export function publicParam(param: string | null, fields: ReadonlySet<string>): string | null {
  if (param === null || !/^[a-z]\w{0,63}(?:\[\d{1,7}\]|\.\w{1,64}){0,16}$/i.test(param)) return null;
  const names = param.split(/[.[\]]+/).filter((part) => part !== '' && !/^\d+$/.test(part));
  return names.every((name) => fields.has(name)) ? param : null;
}

/** In the form in which patterns find everything, with no invisible character in between. */
function readable(message: string): string {
  let text = message.normalize('NFKC').replace(INVISIBLE, '');
  if (text.length > MAX_READ_CHARS) {
    text = text.slice(0, MAX_READ_CHARS);
    // Half a word could be half a key, which is not known as one.
    text = text.slice(0, text.search(/\S*$/));
  }
  return text;
}

function without(rules: readonly Rule[], text: string): string {
  for (const [pattern, isMeant] of rules)
    text = text.replace(pattern, (found) => (!isMeant || isMeant(found) ? REMOVED : found));
  return text;
}

function replaceName(text: string, name: string, by: string): string {
  if (name === '') return text;
  const literal = name.normalize('NFKC').replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
  const pattern = name.length < MIN_DISTINCT_CHARS ? `(?<![\\w-])${literal}(?![\\w-])` : literal;
  return text.replace(new RegExp(pattern, 'gi'), () => by);
}

function byLength(names: readonly string[]): string[] {
  return [...names].sort((a, b) => b.length - a.length);
}

function shortened(text: string, maxChars: number): string {
  const line = text.replace(BLANKS, ' ').trim();
  return line.length <= maxChars ? line : `${line.slice(0, maxChars - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
