import type { UsageDraft } from '@tollgate/contracts';
import type { Hold } from '../admit/admit';
import type { CatalogModel } from '../catalog/catalog';
import { CountingBudget } from '../catalog/counting-budget';
import { countTokens } from '../catalog/tokenizer';
import { DeliveredText } from '../upstream/delivered-text';
import { readAsk } from './ask';
import { Job } from './job';

const price = {
  version: 'v',
  inputFemtos: '1000000',
  cachedInputFemtos: '0',
  outputFemtos: '1000000',
  requestNanos: '0',
};
const model = {
  id: 'm',
  tokenizer: 'o200k_base',
  contextTokens: 1_000_000,
  templateTokensPerMessage: 3,
  templateTokens: 3,
  maxTokensPerImage: null,
  maxTokensPerAudio: null,
} as CatalogModel;
const PROMPT = 'a few words '.repeat(9_000);

function job() {
  const ask = readAsk(
    'chat',
    Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: PROMPT }] })),
  );
  const hold = { holdNanos: 10n ** 9n, promptTokens: ask.raw.length, promptIsExact: false } as Hold;
  return new Job(ask, model, { price } as UsageDraft, hold, 'r');
}

describe('the records of many streams', () => {
  it('count a bounded amount in one turn, say less than the truth until then, and the truth in the end', async () => {
    const budget = new CountingBudget();
    const streams = Array.from({ length: 3 }, () => {
      const text = new DeliveredText((words) => countTokens('o200k_base', words));
      for (let i = 0; i < 10; i += 1)
        text.add({ choice: 0, text: ' ten more words that nobody has counted until this moment' });
      return { job: job(), text };
    });
    const records = () => streams.map(({ job: one, text }) => one.record(text, 10, budget)!);
    const truth = streams[0]!.job.count(
      countTokens('o200k_base', ' ten more words that nobody has counted until this moment'.repeat(10)),
    );
    streams[0]!.job = job();
    const first = records();
    // 106 KB of prompt fit into a turn once; the texts fit beside it.
    expect(first.map(({ promptTokens }) => promptTokens)).toEqual([truth.promptTokens, 6, 6]);
    for (const { completionTokens } of first) expect(completionTokens).toBeLessThanOrEqual(truth.completionTokens);
    for (let turn = 0; turn < 2; turn += 1) {
      await new Promise(setImmediate);
      records();
    }
    await new Promise(setImmediate);
    expect(records()).toEqual(
      streams.map(() => ({ ...truth, costNanos: BigInt(truth.promptTokens + truth.completionTokens) })),
    );
  });
});
