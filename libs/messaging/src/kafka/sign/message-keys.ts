import { createSecretKey, type KeyObject } from 'node:crypto';
import { SERVICES, servicePairs, type Service, type ServicePair } from '@tollgate/contracts';

/** During a rotation: the old one and the new one. */
export const MAX_KEYS_PER_PAIR = 2;
export const KEY_BYTES = 32;
const FORM =
  "from, to, the key's id (1 to 16 of a-z and 0-9) and the key (64 of 0-9 and a-f), " +
  'as in "metering billing 3f9a1c20 …"';
const LINE = new RegExp(
  `^(${SERVICES.join('|')}) (${SERVICES.join('|')}) ([a-z0-9]{1,16}) ([0-9a-f]{${2 * KEY_BYTES}})$`,
);

/** A line of a keys file. */
export interface KeyLine extends ServicePair {
  id: string;
  /** Hexadecimal. */
  secret: string;
}

export interface MessageKey {
  id: string;
  key: KeyObject;
}

/** The keys with which services verify each other: one for each ordered pair, two during a rotation. */
export interface KeyRing {
  /** The key with which `from` signs messages to `to`. */
  signing(pair: ServicePair): MessageKey | undefined;
  /** The key with this id, if it is valid. */
  named(pair: ServicePair, id: string): MessageKey | undefined;
  close(): void;
}

/** A keys file that cannot be used. Each problem is a line. */
export class BadKeysError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'BadKeysError';
  }
}

/** The keys of a file. */
export class MessageKeys implements KeyRing {
  private readonly byPair = new Map<string, MessageKey[]>();

  constructor(lines: readonly KeyLine[]) {
    for (const { from, to, id, secret } of lines) {
      const of = this.byPair.get(nameOf({ from, to })) ?? [];
      of.push({ id, key: createSecretKey(secret, 'hex') });
      this.byPair.set(nameOf({ from, to }), of);
    }
  }

  signing(pair: ServicePair): MessageKey | undefined {
    return this.byPair.get(nameOf(pair))?.[0];
  }

  named(pair: ServicePair, id: string): MessageKey | undefined {
    return this.byPair.get(nameOf(pair))?.find((key) => key.id === id);
  }

  close(): void {}
}

export const nameOf = ({ from, to }: ServicePair): string => `${from} ${to}`;

/** The pairs of a service: its file must have exactly these. */
export const pairsOf = (service: Service): ServicePair[] =>
  servicePairs().filter(({ from, to }) => from === service || to === service);

/**
 * Reads the text of a keys file: one key in each line. The first key of a pair signs. Empty lines and lines that begin
 * with # are ignored. BadKeysError never contains a part of a key.
 */
export function readKeys(text: string): KeyLine[] {
  const lines: KeyLine[] = [];
  const problems: string[] = [];
  const counts = new Map<string, number>();
  const ids = new Set<string>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, from, to, id, secret] = LINE.exec(line.trim()) ?? [];
    if (secret === undefined) {
      problems.push(`line ${index + 1} must be ${FORM}`);
      continue;
    }
    const key = { from, to, id, secret } as KeyLine;
    const count = (counts.get(nameOf(key)) ?? 0) + 1;
    counts.set(nameOf(key), count);
    if (count > MAX_KEYS_PER_PAIR)
      problems.push(`line ${index + 1}: more than ${MAX_KEYS_PER_PAIR} keys from ${from} to ${to}`);
    if (ids.has(`${nameOf(key)} ${id}`)) problems.push(`line ${index + 1}: the id ${id} twice from ${from} to ${to}`);
    ids.add(`${nameOf(key)} ${id}`);
    lines.push(key);
  }
  if (problems.length > 0) throw new BadKeysError(problems);
  return lines;
}

/** Like `readKeys`, and checks that the file belongs to this service: it has exactly the service's pairs. */
export function readKeysOf(service: Service, text: string): KeyLine[] {
  const lines = readKeys(text);
  const found = new Set(lines.map(nameOf));
  const needed = new Set(pairsOf(service).map(nameOf));
  const says = (names: string[]) => names.map((name) => `"${name}"`).join(', ');
  const foreign = [...found].filter((name) => !needed.has(name));
  const missing = [...needed].filter((name) => !found.has(name));
  const problems = [
    ...(foreign.length > 0 ? [`it has keys of others (${says(foreign)}): give ${service} the file of its own`] : []),
    ...(missing.length > 0 ? [`it has no key for ${says(missing)}`] : []),
  ];
  if (problems.length > 0) throw new BadKeysError(problems);
  return lines;
}

const HEAD = (service: string) =>
  `# Message keys of ${service}: secret. Made by "tollgate message-keys create", ` +
  'changed by "tollgate message-keys rotate".\n' +
  '# From, to, id, key: of a pair the first line signs, all are accepted.\n';

export const writeKeys = (service: string, lines: readonly KeyLine[]): string =>
  HEAD(service) + lines.map(({ from, to, id, secret }) => `${from} ${to} ${id} ${secret}\n`).join('');
