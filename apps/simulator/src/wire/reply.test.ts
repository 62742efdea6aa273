import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { NO_FAULTS } from '../config/fault-rules';
import { DEFAULTS } from '../config/settings';
import { chatCompletion } from './chat';
import type { Body } from './request-fields';

interface Choice {
  index: number;
  finish_reason: string | null;
  message?: Turn;
  delta?: Turn;
}
interface Turn {
  role?: string;
  content?: string | null;
  tool_calls?: { function: { name?: string; arguments: string } }[];
}
interface Payload {
  choices: Choice[];
  usage?: { completion_tokens: number } | null;
}

const TOOL = {
  type: 'function',
  function: {
    name: 'look_up',
    parameters: { type: 'object', properties: { term: { type: 'string' }, page: { type: 'integer' } } },
  },
};
const SCHEMA = {
  type: 'object',
  properties: { title: { type: 'string' }, tags: { type: 'array', items: { enum: ['ä', 'b'] } } },
};

const requests: fc.Arbitrary<Body> = fc
  .record(
    {
      messages: fc.array(
        fc.record({ role: fc.constantFrom('system', 'user', 'assistant'), content: fc.string({ unit: 'grapheme' }) }),
        { minLength: 1, maxLength: 3 },
      ),
      n: fc.integer({ min: 1, max: 3 }),
      max_tokens: fc.integer({ min: 1, max: 80 }),
      seed: fc.integer(),
      stop: fc.oneof(
        fc.constantFrom('.', ' the', 'e', '"'),
        fc.array(fc.string({ minLength: 1, maxLength: 2 }), { maxLength: 4 }),
      ),
      tools: fc.constant([TOOL]),
      response_format: fc.constantFrom(
        { type: 'json_object' },
        { type: 'json_schema', json_schema: { schema: SCHEMA } },
      ),
    },
    { requiredKeys: ['messages'] },
  )
  .map((request) => ({ ...request, model: 'm' }));

describe('any chat request', () => {
  it('has one answer, plain or streamed: in legal order, one token per chunk, within max_tokens', async () => {
    await assertRuns(
      fc.property(requests, (request) => {
        const plain = chatCompletion(request, DEFAULTS, NO_FAULTS);
        const streamed = chatCompletion(
          { ...request, stream: true, stream_options: { include_usage: true } },
          DEFAULTS,
          NO_FAULTS,
        );
        if (plain.stream || !streamed.stream) throw new Error('the wrong form of reply');
        const whole = JSON.parse(plain.body) as Payload;
        const frames = [...streamed.frames];
        expect(frames.pop()!.event).toBe('data: [DONE]\n\n');
        const chunks = frames.map(({ event }) => JSON.parse(event.replace(/^data: (.*)\n\n$/, '$1')) as Payload);
        expect(chunks.pop()).toMatchObject({ choices: [], usage: whole.usage });
        expect(frames.reduce((sum, frame) => sum + frame.tokens, 0)).toBe(plain.tokens);
        expect(plain.tokens).toBeLessThanOrEqual(
          whole.choices.length * ((request['max_tokens'] as number | undefined) ?? Infinity),
        );
        for (const { index, message, finish_reason } of whole.choices) {
          const own = chunks.map((chunk) => chunk.choices[0]!).filter((choice) => choice.index === index);
          expect(own.map((choice) => choice.finish_reason)).toEqual([...own.slice(1).map(() => null), finish_reason]);
          expect(own.map((choice) => choice.delta!.role)).toEqual(['assistant', ...own.slice(1).map(() => undefined)]);
          expect(own.map((choice) => choice.delta!.content ?? '').join('')).toBe(message!.content ?? '');
          const call = message!.tool_calls?.[0]!.function;
          expect(own.map((choice) => choice.delta!.tool_calls?.[0]!.function.arguments ?? '').join('')).toBe(
            call?.arguments ?? '',
          );
          if (finish_reason !== 'length' && whole.choices.length === 1) {
            expect(whole.usage!.completion_tokens).toBe(
              call ? countTokens(call.name!) + countTokens(call.arguments) : countTokens(message!.content!),
            );
          }
        }
      }),
      { leastRuns: 100, mostRuns: 300, timeBoxMs: 5_000 },
    );
  });

  it('stays within max_tokens if a stop text begins within a token', () => {
    const request = { messages: [{ role: 'system', content: '' }], max_tokens: 2, stop: 'e', model: 'm' };
    const reply = chatCompletion({ ...request, response_format: { type: 'json_object' } }, DEFAULTS, NO_FAULTS);
    if (reply.stream) throw new Error('the wrong form of reply');
    expect(reply.tokens).toBeLessThanOrEqual(2);
  });
});
