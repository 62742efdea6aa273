import type { InferenceKind } from '@tollgate/contracts';
import { endOfString, isNestedTooDeeply, toWire } from '../upstream/json-text';
import { withoutHollow } from '../upstream/output-text';
import { readUsage, type ReportedUsage } from '../upstream/usage-field';
import { membersOf } from './json-members';

/** A backend's answer that was not streamed. */
export interface PlainResponse {
  /** `choices`, or `data` of embeddings. */
  content: Record<string, unknown>[];
  /** The same as the backend wrote it, one character a byte. */
  contentJson: string;
  usage: ReportedUsage;
}

/** No number of a model has so many digits, and what a number is read as has not: it is written anew. */
const LONG_NUMBER = /[\d.]{64}/;

/** Reads a backend's answer; null when it is none of this kind. */
export function readPlainResponse(kind: InferenceKind, body: Buffer): PlainResponse | null {
  const json = body.toString('latin1');
  if (isNestedTooDeeply(json)) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
  if (typeof parsed !== 'object' || parsed === null) return null;
  const source = parsed as Record<string, unknown>;
  const field = kind === 'embedding' ? 'data' : 'choices';
  const items = source[field];
  if (!areObjects(items) || items.length === 0) return null;
  // Of two members with one name the last counts, as for JSON.parse.
  const { valueStart, end } = membersOf(json).findLast(({ name }) => name === field)!;
  const contentJson = json.slice(valueStart, end);
  const usage = readUsage(source['usage']);
  // Vectors are long, and are not counted.
  if (kind === 'embedding') return { content: items, contentJson, usage };
  const content = items.map(withoutHollow);
  // What is not in `content` would go out all the same, counted by nobody: the other one of two members, names of
  // nothing, endless digits.
  const isRead =
    content.every((choice, i) => choice === items[i]) &&
    namesIn(contentJson) === membersIn(content) &&
    !LONG_NUMBER.test(contentJson);
  return { content, contentJson: isRead ? contentJson : toWire(content), usage };
}

function areObjects(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null);
}

/** Names of members, as they are written: strings before a colon. */
function namesIn(json: string): number {
  let names = 0;
  for (let at = json.indexOf('"'); at !== -1; at = json.indexOf('"', at + 1)) {
    at = endOfString(json, at);
    let next = at + 1;
    while (json.charCodeAt(next) <= 0x20) next += 1;
    if (json[next] === ':') names += 1;
  }
  return names;
}

/** Members of all the objects in a value. */
function membersIn(root: unknown): number {
  const open = [root];
  let members = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const inner of Object.values(value)) open.push(inner);
    if (!Array.isArray(value)) members += Object.keys(value).length;
  }
  return members;
}

/** The client's answer: nothing of the backend but what it generated, and that as it stands. */
export function writePlainResponse(
  kind: InferenceKind,
  { contentJson }: PlainResponse,
  { id, object, createdSeconds, model }: { id: string; object: string; createdSeconds: number; model: string },
  usage: Record<string, unknown>,
): Buffer {
  const head = kind === 'embedding' ? { object, model } : { id, object, created: createdSeconds, model };
  const field = kind === 'embedding' ? 'data' : 'choices';
  return Buffer.from(`${toWire(head).slice(0, -1)},"${field}":${contentJson},"usage":${toWire(usage)}}`, 'latin1');
}
