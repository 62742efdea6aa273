import OpenAI from 'openai';
import { eventually, onceServed } from '@tollgate/testing';
import { call, type Deployment } from './deployment';
import { answered } from './fixtures';

interface Usage {
  data: {
    totals: {
      requests: number;
      promptTokens: number;
      completionTokens: number;
      totalTokens: number;
      costCents: number;
    };
    groups: unknown[];
  };
}
interface Billing {
  data: {
    balanceCents: number;
    entries: { type: string; amountCents: number; source: string; ref: string }[];
    invoices: { period: string; amountCents: number; status: string }[];
  };
}

/** For a new deployment, in which the demo tenant has sent no request yet. */
export function quickstartSuite(tollgate: Deployment): void {
  describe('a new user with the official client', () => {
    let client: OpenAI;
    let token: string;
    /** Usage since then is that of these tests. By default it begins with the month, which may end meanwhile. */
    const from = new Date().toISOString();
    beforeAll(() => {
      const { inferenceUrl: baseURL, demo } = tollgate.ready;
      // A busy store may refuse a request at first.
      const repeating: typeof fetch = (...asked) => onceServed(() => fetch(...asked));
      client = new OpenAI({ baseURL, apiKey: demo!.key, maxRetries: 0, fetch: repeating });
      token = demo!.token;
    });
    const expected = { requests: 0, promptTokens: 0, completionTokens: 0 };
    const count = (usage: { prompt_tokens: number; completion_tokens?: number } | null | undefined) => {
      expected.requests += 1;
      expected.promptTokens += usage!.prompt_tokens;
      expected.completionTokens += usage!.completion_tokens ?? 0;
    };

    it('gets a complete ready line', () => {
      // The console is there where it is not turned off.
      expect(Object.keys(tollgate.ready).sort()).toEqual([
        ...('console' in tollgate.ready ? ['console'] : []),
        'demo',
        'docsUrl',
        'inferenceUrl',
        'managementUrl',
        'operatorSecret',
        'operatorUrl',
      ]);
      expect(tollgate.ready.inferenceUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
      expect(tollgate.ready.managementUrl).toMatch(/\/_api\/v1$/);
      expect(tollgate.ready.demo).toEqual({
        tenantId: expect.stringMatching(/^ten_/),
        key: expect.stringMatching(/^sk-svc-/),
        token: expect.stringMatching(/^fma_/),
      });
    });

    it('lists models', async () => {
      const ids = (await client.models.list()).data.map((model) => model.id);
      expect(ids).toEqual(expect.arrayContaining(['sim-small', 'sim-large', 'sim-embed']));
    });

    it('completes a chat', async () => {
      const chat = await client.chat.completions.create({
        model: 'sim-large',
        messages: [{ role: 'user', content: 'Hello' }],
        max_tokens: 200,
      });
      expect(chat.object).toBe('chat.completion');
      expect(chat.model).toBe('sim-large');
      expect(chat.choices[0]!.message.content).toBeTruthy();
      expect(chat.usage!.total_tokens).toBe(chat.usage!.prompt_tokens + chat.usage!.completion_tokens);
      count(chat.usage);
    });

    it('completes a chat as a stream, with the usage on its last chunk', async () => {
      const stream = await client.chat.completions.create({
        model: 'sim-large',
        messages: [{ role: 'user', content: 'Hello' }],
        stream: true,
      });
      const chunks = [];
      for await (const chunk of stream) chunks.push(chunk);
      expect(
        chunks.every(
          (chunk) =>
            chunk.object === 'chat.completion.chunk' && chunk.choices.length === 1 && chunk.model === 'sim-large',
        ),
      ).toBe(true);
      expect(chunks.map((chunk) => chunk.choices[0]!.delta.content ?? '').join('')).toBeTruthy();
      expect(chunks.at(-1)!.choices[0]!.finish_reason).toBeTruthy();
      count(chunks.at(-1)!.usage);
    });

    it('makes a legacy completion and embeddings', async () => {
      const completion = await client.completions.create({ model: 'sim-small', prompt: 'Once upon a time' });
      expect(completion.object).toBe('text_completion');
      expect(completion.choices[0]!.text).toBeTruthy();
      count(completion.usage);
      const embedding = await client.embeddings.create({ model: 'sim-embed', input: ['one', 'two'] });
      expect(embedding.data).toHaveLength(2);
      count(embedding.usage);
    });

    it('sees these tokens in the usage and the debit in the ledger within 2 s', async () => {
      await eventually(
        async () => {
          const { body } = await call<Usage>(`${tollgate.ready.managementUrl}/usage?from=${from}`, token);
          expect(body.data.totals).toMatchObject({
            ...expected,
            totalTokens: expected.promptTokens + expected.completionTokens,
          });
        },
        { timeoutMs: 2_000 },
      );
      await eventually(
        async () => {
          const { body } = await call<Billing>(`${tollgate.ready.managementUrl}/billing`, token);
          const debits = body.data.entries.filter((entry) => entry.type === 'usage');
          expect(debits.length).toBeGreaterThan(0);
          expect(debits.every((entry) => entry.amountCents < 0 && entry.source === 'metering')).toBe(true);
          expect(body.data.balanceCents).toBe(body.data.entries.reduce((sum, entry) => sum + entry.amountCents, 0));
          // There may be two, because the month may have ended meanwhile.
          const { invoices } = body.data;
          expect(invoices.length).toBeGreaterThan(0);
          const months = [from, new Date().toISOString()].map((at) => at.slice(0, 7));
          for (const { period, status } of invoices) expect([months.includes(period), status]).toEqual([true, 'open']);
          const billed = invoices.reduce((sum, { amountCents }) => sum + amountCents, 0);
          expect(billed).toBe(1_000 - body.data.balanceCents);
        },
        { timeoutMs: 2_000 },
      );
    });

    it('is charged by the price list to the nano, including the carried remainder', async () => {
      // sim-large 50/200, sim-small 0.15/0.60, sim-embed 0.02 per million tokens, computed from the answers.
      interface ByModel {
        data: { groups: { model: string; promptTokens: number; completionTokens: number }[] };
      }
      const usage = `${tollgate.ready.managementUrl}/usage?groupBy=model&from=${from}`;
      const body = await answered(() => call<ByModel>(usage, token), 200);
      const nanosPerToken: Record<string, [number, number]> = {
        'sim-large': [50_000, 200_000],
        'sim-small': [150, 600],
        'sim-embed': [20, 0],
      };
      const nanos = body.data.groups.reduce(
        (sum, group) =>
          sum +
          group.promptTokens * nanosPerToken[group.model]![0] +
          group.completionTokens * nanosPerToken[group.model]![1],
        0,
      );
      await eventually(async () => {
        const { body: books } = await call<{ data: { balanceCents: number; carriedNanos: string } }>(
          `${tollgate.ready.operatorUrl}/_operator/v1/tenants/${tollgate.ready.demo!.tenantId}/credit`,
          tollgate.ready.operatorSecret,
        );
        expect(1_000 * 1e7 - books.data.balanceCents * 1e7 + Number(books.data.carriedNanos)).toBe(nanos);
        expect(Number(books.data.carriedNanos)).toBeLessThan(1e7);
      });
    });
  });
}
