import type { TokenizerThrottle } from '../../prompt/tokenizer-throttle';
import type { ReadResult } from '../../upstream/exchange/plain-answer';
import type { ReportedUsage } from '../../upstream/wire/usage-field';
import type { DeliveredOutput } from '../admitted-request';
import { fitPlain, type RequestedAnswer } from './plain-output';
import {
  beginPlainResponse,
  type BegunResponse,
  encodeVectors,
  haveMessages,
  haveVectors,
  type PlainResponse,
  readPlainResponse,
} from './plain-response';

/** What is needed of a plain answer to settle and to send it. */
export type PlainReading =
  | {
      kind: 'fits' | 'cut';
      begun: BegunResponse;
      /** Null also of an answer that was cut: the backend's count includes what was cut. */
      usage: ReportedUsage;
      output: DeliveredOutput;
      /** The backend ended every choice that was asked for with `length`. */
      wentToLimit: boolean;
    }
  /** Longer than requested. No other backend is asked. */
  | { kind: 'refused'; reason: string };

/** Reads a backend's plain answer, and checks it against what was asked for. */
export async function readPlain(
  body: Buffer,
  asked: RequestedAnswer,
  turns: Pick<TokenizerThrottle, 'take'>,
): Promise<ReadResult<PlainReading>> {
  const read = readPlainResponse(asked.kind, body);
  if (!read) return { kind: 'unusable', reason: 'the answer cannot be parsed' };
  if (asked.kind === 'chat' && !haveMessages(read.content))
    return { kind: 'unusable', reason: 'a choice has no message' };
  if (asked.kind === 'embedding' && !haveVectors(read.content, asked.prompts))
    return { kind: 'unusable', reason: 'an input has no vector' };
  if (asked.encodingFormat === 'base64') encodeVectors(read);
  const fitted = await fitPlain(asked, read, turns);
  if (fitted.kind === 'refused') return { kind: 'usable', answer: fitted };
  const { kind, response, output } = fitted;
  const begun = beginPlainResponse(asked.kind, response, asked.identity);
  const usage = kind === 'cut' ? null : response.usage;
  const wentToLimit = endedByLimit(response) === asked.choices;
  return { kind: 'usable', answer: { kind, begun, usage, output, wentToLimit } };
}

function endedByLimit({ content }: PlainResponse): number {
  return content.filter((choice) => choice['finish_reason'] === 'length').length;
}
