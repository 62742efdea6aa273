/**
 * Engines and proxies send the same text of reasoning under several names of one message or delta: some versions of
 * vLLM as `reasoning` and `reasoning_content`, OpenRouter also in `reasoning_details`, LiteLLM also in
 * `thinking_blocks` and again in `provider_specific_fields`. A copy says nothing more, so it counts as nothing. The
 * same holds for the signatures of the reasoning and for encrypted reasoning, which the lists repeat.
 *
 * Each name has one text in a message or delta: the joined text of its entries. A list has three: its reasoning, its
 * signatures, and its encrypted reasoning. Only a text that is equal to another one, as a whole, is a copy. So of texts
 * that differ anywhere, both count, and a stream is compared chunk by chunk.
 */

type Members = Record<string, unknown>;

/** Names of one text each. */
const PLAIN = ['reasoning', 'reasoning_content'] as const;
/** Lists of entries, and for each text of a list the members of an entry that have a part of it. */
const LISTS: readonly (readonly [string, readonly (readonly string[])[]])[] = [
  ['reasoning_details', [['text', 'summary'], ['signature'], ['data']]],
  ['thinking_blocks', [['thinking'], ['signature'], ['data']]],
];
/** May have all of these names once more. */
const AGAIN = 'provider_specific_fields';

/** Strings whose text, joined, is one text of reasoning. */
type Text = { of: Members; name: string }[];

/** The members of objects that are copies. */
export type Copies = ReadonlyMap<Members, ReadonlySet<string>>;

/** The copies in a message or a delta. Null: there are none. */
export function copiesIn(holder: Members): Copies | null {
  const texts = textsOf(holder);
  if (texts.length < 2) return null;
  let copies: Map<Members, Set<string>> | null = null;
  const counted = new Set<string>();
  for (const text of texts) {
    const joined = join(text);
    if (!counted.has(joined)) {
      counted.add(joined);
      continue;
    }
    copies ??= new Map();
    for (const { of, name } of text) {
      const names = copies.get(of);
      if (names) names.add(name);
      else copies.set(of, new Set([name]));
    }
  }
  return copies;
}

/**
 * The message with the copies of its plain texts made equal to them again.
 * @param former the message before its plain texts were cut
 */
export function withCopies(cut: Members, former: Members): Members {
  const texts = textsOf(former);
  const changed = new Map<Members, Members>();
  for (const name of PLAIN) {
    const [before, now] = [former[name], cut[name]];
    if (typeof before !== 'string' || typeof now !== 'string' || before === now) continue;
    for (const text of texts) {
      if (join(text) !== before) continue;
      let at = 0;
      for (const { of, name: member } of text) {
        const { length } = of[member] as string;
        changed.set(of, { ...changed.get(of), [member]: now.slice(at, at + length) });
        at += length;
      }
    }
  }
  const written = (of: Members): Members => ({ ...listsOf(of, changed), ...changed.get(of) });
  const again = former[AGAIN];
  return { ...cut, ...written(former), ...(isMembers(again) && { [AGAIN]: { ...again, ...written(again) } }) };
}

/** The lists of these members with changed entries. */
function listsOf(members: Members, changed: ReadonlyMap<Members, Members>): Members {
  const lists: Members = {};
  for (const [name] of LISTS) {
    const list = members[name];
    if (Array.isArray(list))
      lists[name] = (list as unknown[]).map((entry) =>
        isMembers(entry) ? { ...entry, ...changed.get(entry) } : entry,
      );
  }
  return lists;
}

/** Those that are not empty. Plain ones come first: a text that is also plain counts there. */
function textsOf(holder: Members): Text[] {
  const texts: Text[] = [];
  plainOf(holder, texts);
  const again = holder[AGAIN];
  listedIn(holder, texts);
  if (isMembers(again)) {
    plainOf(again, texts);
    listedIn(again, texts);
  }
  return texts;
}

function plainOf(of: Members, texts: Text[]): void {
  for (const name of PLAIN) if (isText(of[name])) texts.push([{ of, name }]);
}

function listedIn(members: Members, texts: Text[]): void {
  for (const [list, kinds] of LISTS) {
    const entries = members[list];
    if (!Array.isArray(entries)) continue;
    for (const names of kinds) {
      const text: Text = [];
      for (const of of entries as unknown[])
        if (isMembers(of)) for (const name of names) if (isText(of[name])) text.push({ of, name });
      if (text.length > 0) texts.push(text);
    }
  }
}

function join(text: Text): string {
  return text.length === 1 ? (text[0]!.of[text[0]!.name] as string) : text.map(({ of, name }) => of[name]).join('');
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
