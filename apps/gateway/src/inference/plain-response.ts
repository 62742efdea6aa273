import type { InferenceKind, TokenCounts } from '@tollgate/contracts';
import { toWire } from '../upstream/json-text';
import { outputText } from '../upstream/output-text';
import { readUsage } from '../upstream/usage-field';
import { membersOf } from './json-members';

/** A backend's answer that was not streamed. */
export interface PlainResponse {
  /** `choices`, or `data` of embeddings. */
  content: Record<string, unknown>[];
  /** The same as the backend wrote it, one character a byte. */
  contentJson: string;
  /** Null: missing, or not to be believed. */
  usage: TokenCounts | null;
}

/** Reads a backend's answer; null when it is none of this kind. */
export function readPlainResponse(kind: InferenceKind, body: Buffer): PlainResponse | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
  if (typeof parsed !== 'object' || parsed === null) return null;
  const source = parsed as Record<string, unknown>;
  const field = kind === 'embedding' ? 'data' : 'choices';
  const content = source[field];
  if (!Array.isArray(content) || content.length === 0) return null;
  if (!content.every((item) => typeof item === 'object' && item !== null)) return null;
  const json = body.toString('latin1');
  // Of two members with one name the last counts, as for JSON.parse.
  const { valueStart, end } = membersOf(json).findLast(({ name }) => name === field)!;
  return { content, contentJson: json.slice(valueStart, end), usage: readUsage(source['usage']) };
}

/** The texts that the choices delivered, for counting. */
export function deliveredTexts({ content }: PlainResponse): string[] {
  return content.map((choice) => outputText((choice['message'] ?? choice) as Record<string, unknown>));
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
