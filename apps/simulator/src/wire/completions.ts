import { asciiJson } from '../generate/ascii-json';
import { createdNow, DONE, FINGERPRINT, interleave, newReplyId, ownModelName, type Frame, type Reply } from './reply';
import { limitWords, readCompletionFields, readTexts, type Body } from './request-fields';
import { usageJson } from './usage';
import type { FaultPlan } from '../config/fault-rules';
import type { ModelSettings } from '../config/settings';
import { composeAnswer, type Answer } from '../generate/answer';
import { hashText, mix } from '../generate/random';

const MAX_PROMPTS = 2_048;

/** `POST /v1/completions`: `n` choices for each prompt, in order. Throws `RequestError`. */
export function textCompletion(body: Body, settings: ModelSettings, faults: FaultPlan): Reply {
  const fields = readCompletionFields(body);
  const prompts = readTexts(body['prompt'] ?? '', 'prompt', MAX_PROMPTS);
  const seed = mix(hashText(fields.model), typeof body['seed'] === 'number' ? body['seed'] : 0);
  const brief = {
    answerTokens: settings.answerTokens,
    maxTokens: fields.maxTokens,
    stop: fields.stop,
    form: { kind: 'words' },
  } as const;
  limitWords(prompts.length * fields.choices, brief);
  const answers = prompts.flatMap((prompt) =>
    Array.from({ length: fields.choices }, (_, i) => composeAnswer(brief, mix(mix(seed, prompt.hash), i))),
  );
  const promptTokens = prompts.reduce((sum, prompt) => sum + prompt.tokens, 0);
  const completionTokens = answers.reduce((sum, answer) => sum + answer.completionTokens, 0);
  const usage = usageJson({ promptTokens, completionTokens, cachedTokens: settings.cachedTokens ?? null }, faults);
  const model = asciiJson(ownModelName(fields.model));
  const object = `"object":"text_completion","created":${createdNow()},"model":${model}`;
  const head = `{"id":"${newReplyId('cmpl')}",${object},"system_fingerprint":"${FINGERPRINT}"`;
  if (fields.stream) return { stream: true, promptTokens, frames: frames(head, answers, fields.includeUsage, usage) };
  const choices = answers.map((answer, i) => choiceJson(i, answer.pieces.join(''), answer.finishReason)).join(',');
  return {
    stream: false,
    promptTokens,
    tokens: completionTokens,
    body: `${head},"choices":[${choices}]${usage === null ? '' : `,"usage":${usage}`}}`,
  };
}

/** A chunk for each token, then a chunk without text that has the finish reason. */
function* frames(head: string, answers: Answer[], includeUsage: boolean, usage: string | null): Generator<Frame> {
  const open = `data: ${head},"choices":[`;
  const close = includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  yield* interleave(answers.map((answer, i) => choiceFrames(answer, i, open, close)));
  if (includeUsage && usage !== null) yield { event: `${open}],"usage":${usage}}\n\n`, tokens: 0 };
  yield DONE;
}

function* choiceFrames(answer: Answer, index: number, open: string, close: string): Generator<Frame> {
  for (const piece of answer.pieces) yield { event: `${open}${choiceJson(index, piece, null)}${close}`, tokens: 1 };
  yield { event: `${open}${choiceJson(index, '', answer.finishReason)}${close}`, tokens: 0 };
}

function choiceJson(index: number, text: string, finishReason: string | null): string {
  const reason = JSON.stringify(finishReason);
  return `{"text":${JSON.stringify(text)},"index":${index},"logprobs":null,"finish_reason":${reason}}`;
}
