/**
 * Redacts backends' error messages. `publicWords` is for clients, who must not learn the backend's hosts, paths and
 * models. `operatorWords` is for the operator's log, which must not contain keys.
 */

const REMOVED = '[removed]';
const MAX_PUBLIC_CHARS = 300;
const MAX_LOGGED_CHARS = 300;
/** Only this much of a message is examined. The rest would be cut off anyway. */
const MAX_READ_CHARS = 4_000;
/** Shorter model or host names ("a", "tiny") are replaced only as whole words. */
const MIN_DISTINCT_CHARS = 5;

/**
 * Matches of the pattern are removed, except those that `shouldRemove` rejects. Each pattern matches only from the
 * start of a run of its characters, so that none takes quadratic time.
 */
type Rule = [pattern: RegExp, shouldRemove?: (match: string) => boolean];

const URL_RULE: Rule = [/(?<![\w+.-])[\w+.-]*:\/\/[^\s"'<>]*/g];

/**
 * Text after "Bearer" or "password:", keys with known prefixes, and long runs that are not words: base64, hex, JWT,
 * UUID.
 */
const SECRETS: readonly Rule[] = [
  [/\b(?:bearer|basic)\s+["']?[\w.~+/=-]{6,}/gi],
  [/\b(?:token|api[-_ ]?key[^:=]{0,20}|password|secret|authorization)["']?\s*[:=]\s*["']?[\w.~+/=-]{6,}/gi],
  [/(?<![A-Za-z0-9])(?:sk|pk|rk|hf|gh[a-z]|pat|glpat|xox[a-z]|nvapi|gsk|fma)[-_][\w.~+/=-]{6,}/gi],
  [/(?<![A-Za-z0-9])(?:AKIA|AIza|eyJ)[\w.~+/=-]{8,}/g],
  [/(?<![\w-])[0-9a-f][0-9a-f-]{15,}(?![\w-])/gi, (match) => /\d/.test(match)],
  [/[\w+/=.~-]{24,}/g, (match) => /\d/.test(match) && /[a-z]/i.test(match)],
  [/[A-Za-z0-9+/=]{32,}/g],
];

/** Extensions of files that engines name in their messages. */
const FILE_EXTENSIONS =
  'py pyc js mjs cjs ts go rs cc cpp cu cuh hpp so dll java rb c h gguf safetensors yaml yml toml sock'.split(' ');

/** Network addresses and file paths. */
const PLACES: readonly Rule[] = [
  [/\bdata:[^\s"'<>]*/gi],
  [/(?<![^\s"'<>@])[^\s"'<>@]+@[^\s"'<>@]+/g],
  // Windows drives and shares, paths from the root, paths of several parts, and names of source files.
  [/\b[a-z]:\\[^\s"'<>]*|\\\\[^\s"'<>]+/gi],
  [/(?<![\w)\]])(?:~|\.{1,2})?\/[\w.@%+~:-][^\s"'<>,;)]*/g],
  [/(?<![\w.@%+~-])[\w.@%+~-]+(?:\/[\w.@%+~-]+)+/g, (match) => /\/.*\/|\.\w{1,8}$/.test(match)],
  [new RegExp(`(?<![\\w-])[\\w-]+\\.(?:${FILE_EXTENSIONS.join('|')})\\b(?::\\d+)*`, 'gi')],
  // Addresses: IPv4, IPv6, a name with a port.
  [/(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?!\d)/g],
  [/(?<![\w:])\[?(?:[0-9a-f]{1,4})?(?::[0-9a-f]{0,4}){2,8}(?:\.\d{1,3}){0,3}(?:%\w+)?\]?(?::\d+)?/gi],
  [/(?<![\w.-])[a-z0-9][\w.-]*:\d{2,5}\b/gi],
  [/\blocalhost\b/gi],
];
/**
 * A name with dots. It is taken for a host unless all its labels are field names or indexes (`messages.0.content`), or
 * it is the whole path of a member that the client sent (`simulator.answerTokens`).
 */
const DOTTED = /(?<![\w.-])[\w-]+(?:\.[\w-]+)+(?![\w-])/g;
const ABBREVIATION = /^(?:[a-z]\.)+[a-z]$/i;
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/** The start of a stack trace. Everything from there on is removed. */
const STACK =
  /Traceback \(most recent|\n\s*at [^\n]*[(:]|\n\s*File "|\bgoroutine \d+ \[|\bstack backtrace:|\bC\+\+ exception/;
/**
 * Format characters (bidirectional controls, zero width), private use, lone surrogates, and controls except tabs and
 * line ends.
 */
const INVISIBLE = /[\p{Cf}\p{Co}\p{Cs}]|(?![\t\n\r])\p{Cc}/gu;
const BLANKS = /[\s\p{Z}]+/gu;
/**
 * Placeholder for the model while patterns are applied. A private-use character, so `readable` has removed it from the
 * message.
 */
const MODEL = '\uE000';

export interface Known {
  /** Public id of the model. */
  model: string;
  /** Names to hide: the model's names at its backends. */
  innerModels: readonly string[];
  /** Names to hide: the backends' hosts. */
  hosts: readonly string[];
  /** Names of the request's fields, at any depth. */
  fields: ReadonlySet<string>;
  /** The undocumented fields of the request, with their values. */
  sent: Readonly<Record<string, unknown>>;
}

/**
 * A backend's message for a client: one line, bounded, without addresses, paths, keys and inner names. Null if nothing
 * meaningful is left.
 */
export function publicWords(message: string, { model, innerModels, hosts, fields, sent }: Known): string | null {
  let text = readable(message);
  const stack = STACK.exec(text);
  if (stack) text = text.slice(0, stack.index);
  for (const name of byLength([...innerModels, model])) text = replaceName(text, name, MODEL);
  for (const host of byLength(hosts)) text = replaceName(text, host, REMOVED);
  text = without([URL_RULE, ...SECRETS, ...PLACES], text).replace(DOTTED, (name) => {
    const labels = name.split('.');
    const isField = labels.every((label) => fields.has(label) || /^\d{1,7}$/.test(label));
    return isField || isPathIn(sent, labels) || NUMBER.test(name) || ABBREVIATION.test(name) ? name : REMOVED;
  });
  text = shortened(
    text.replaceAll(MODEL, () => model),
    MAX_PUBLIC_CHARS,
  );
  return /\p{L}/u.test(text.replaceAll(REMOVED, '')) ? text : null;
}

/** A backend's message for the log: one line, bounded, without keys. */
export function operatorWords(message: string, secret: string | null): string {
  let text = readable(message);
  const key = secret?.replace(/^Bearer /, '') ?? '';
  if (key !== '') text = text.replaceAll(key, REMOVED);
  return shortened(without(SECRETS, text), MAX_LOGGED_CHARS);
}

/** The field that the backend blames (`messages[0].content`), or null if the request has no such field. */
export function publicParam(param: string | null, fields: ReadonlySet<string>): string | null {
  if (param === null || !/^[a-z]\w{0,63}(?:\[\d{1,7}\]|\.\w{1,64}){0,16}$/i.test(param)) return null;
  const names = param.split(/[.[\]]+/).filter((part) => part !== '' && !/^\d+$/.test(part));
  return names.every((name) => fields.has(name)) ? param : null;
}

/** Normalises a message for the patterns: NFKC, bounded, without invisible characters. */
function readable(message: string): string {
  let text = message.normalize('NFKC').replace(INVISIBLE, '');
  if (text.length > MAX_READ_CHARS) {
    text = text.slice(0, MAX_READ_CHARS);
    // The last word may be incomplete, and half a key would not be recognised as one.
    text = text.slice(0, text.search(/\S*$/));
  }
  return text;
}

function isPathIn(value: unknown, labels: readonly string[]): boolean {
  for (const label of labels) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, label)) return false;
    value = (value as Record<string, unknown>)[label];
  }
  return true;
}

function without(rules: readonly Rule[], text: string): string {
  for (const [pattern, shouldRemove] of rules)
    text = text.replace(pattern, (match) => (!shouldRemove || shouldRemove(match) ? REMOVED : match));
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
