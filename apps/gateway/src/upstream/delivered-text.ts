import type { Piece } from './chunk-translator';
import { fromWire } from './json-text';

const FIRST_BYTES = 512;

/**
 * The text that a stream delivered, choice by choice, kept as bytes: to be counted exactly if the stream is cut. Copied out of the network
 * chunks, which it would otherwise keep alive at twenty times the size.
 */
export class DeliveredText {
  private readonly choices = new Map<number, { bytes: Buffer; used: number }>();

  add({ choice, text }: Piece): void {
    let kept = this.choices.get(choice);
    if (!kept) {
      kept = { bytes: Buffer.allocUnsafeSlow(FIRST_BYTES), used: 0 };
      this.choices.set(choice, kept);
    }
    if (kept.used + text.length > kept.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(kept.bytes.length * 2, kept.used + text.length));
      kept.bytes.copy(grown, 0, 0, kept.used);
      kept.bytes = grown;
    }
    kept.used += kept.bytes.write(text, kept.used, 'latin1');
  }

  /** The text of each choice, with these pieces after it. */
  texts(more: readonly Piece[] = []): string[] {
    const bodies = new Map(
      [...this.choices].map(([choice, { bytes, used }]) => [choice, bytes.toString('latin1', 0, used)]),
    );
    for (const { choice, text } of more) bodies.set(choice, (bodies.get(choice) ?? '') + text);
    return [...bodies.values()].map(decode);
  }
}

/** Bodies of JSON strings in a row are the body of one. What is none (a backend's invalid escape) is counted as it stands. */
function decode(body: string): string {
  try {
    return fromWire(`"${body}"`) as string;
  } catch {
    return Buffer.from(body, 'latin1').toString('utf8');
  }
}
