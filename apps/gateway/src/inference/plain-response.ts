import type { InferenceKind, TokenCounts } from '@tollgate/contracts';
import { outputText } from '../upstream/output-text';
import { readUsage } from '../upstream/usage-field';

/** A backend's answer that was not streamed. */
export interface PlainResponse {
  /** `choices`, or `data` of embeddings. */
  content: Record<string, unknown>[];
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
  const content = source[kind === 'embedding' ? 'data' : 'choices'];
  if (!Array.isArray(content) || content.length === 0) return null;
  if (!content.every((item) => typeof item === 'object' && item !== null)) return null;
  return { content: content as Record<string, unknown>[], usage: readUsage(source['usage']) };
}

/** The texts that the choices delivered, for counting. */
export function deliveredTexts({ content }: PlainResponse): string[] {
  return content.map((choice) => outputText((choice['message'] ?? choice) as Record<string, unknown>));
}

/** The client's answer: nothing of the backend but what it generated. */
export function writePlainResponse(
  kind: InferenceKind,
  { content }: PlainResponse,
  { id, object, createdSeconds, model }: { id: string; object: string; createdSeconds: number; model: string },
  usage: Record<string, unknown>,
): string {
  return JSON.stringify(
    kind === 'embedding'
      ? { object, data: content, model, usage }
      : { id, object, created: createdSeconds, model, choices: content, usage },
  );
}
