import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import type { Allowance } from './stream-sides';
import { choiceOf, chunk, event, Stage, turn } from './stream-stage.fixture';
import { StreamWatch } from './stream-watch';

const SEED = 20_261_122;
const READER = { isQueued: false, destroy: () => {} };

describe('the relay', () => {
  it('withholds the last chunk and [DONE] until `finish` gets the usage', async () => {
    const stage = new Stage();
    stage.feed(chunk('Hello') + chunk('', 'stop') + 'data: [DONE]\n\n');
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'complete', usage: null });
    expect(stage.out).not.toMatch(/"stop"|DONE/);
    expect(stage.relay.finish({ total_tokens: 5 }, false)).toMatch(
      /^data: \{.*"finish_reason":"stop".*"usage":\{"total_tokens":5\}\}\n\ndata: \[DONE\]\n\n$/,
    );
  });

  it('accepts usage only from the last frames', async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const running = event({ choices: [choiceOf('a', null)], usage });
    const partial = event({ choices: [], usage });
    const cut = new Stage();
    cut.feed(running + partial + chunk('b'));
    cut.relay.onEnd();
    await turn();
    expect(cut.end).toMatchObject({ outcome: 'upstream_error', usage: null });
    const whole = new Stage();
    whole.feed(running + chunk('', 'stop') + partial + 'data: [DONE]\n\n');
    await turn();
    expect(whole.end).toMatchObject({ outcome: 'complete', usage: { promptTokens: 1, completionTokens: 2 } });
  });

  it('takes usage in the last choice, and neither counts nor passes it on', async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const stage = new Stage();
    stage.feed(chunk('a') + event({ choices: [{ ...choiceOf('', 'stop'), usage }] }) + 'data: [DONE]\n\n');
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'complete', usage: { promptTokens: 1, completionTokens: 2 } });
    expect(stage.relay.delivered.tokens()).toBe(1);
    expect(stage.relay.finish({}, false)).not.toContain('prompt_tokens');
  });

  it('takes usage and verdicts in an empty choice after the last finish_reason', async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    const empty = { index: 0, delta: { content: '' }, finish_reason: null };
    const verdict = event({ choices: [{ ...empty, content_filter_results: { hate: { severity: 'safe' } } }] });
    const stage = new Stage();
    stage.feed(chunk('a') + chunk('', 'stop') + event({ choices: [empty], usage }) + verdict + 'data: [DONE]\n\n');
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'complete', usage: { promptTokens: 1, completionTokens: 2 } });
    expect(stage.out).toMatch(/"safe"/);
    expect(stage.out).not.toMatch(/"stop"/);
    expect(stage.relay.finish({ total_tokens: 3 }, false)).toMatch(/"stop".*"usage":\{"total_tokens":3\}/);
    const longer = new Stage();
    longer.feed(chunk('a') + chunk('', 'stop') + event({ choices: [choiceOf('b', null)], usage }) + 'data: [DONE]\n\n');
    await turn();
    expect(longer.end).toMatchObject({ outcome: 'upstream_error', usage: null });
  });

  it('takes no chunk with an empty finish_reason for the end of a choice', async () => {
    const cut = new Stage();
    cut.feed(chunk('a', '') + chunk('b', ''));
    expect(cut.text).toBe('ab');
    cut.relay.onEnd();
    await turn();
    expect(cut.end).toMatchObject({ outcome: 'upstream_error', usage: null });
    const whole = new Stage();
    whole.feed(chunk('a', '') + chunk('', 'stop') + 'data: [DONE]\n\n');
    await turn();
    expect(whole.end).toMatchObject({ outcome: 'complete' });
  });

  it('delivers everything in order, even if the client or the credit makes it wait', async () => {
    const answer = fc.constantFrom<ReturnType<Allowance['take']>>('granted', 'granted', 'wait');
    await assertRuns(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1 }),
        fc.array(answer),
        fc.array(fc.integer({ min: 1, max: 400 })),
        fc.array(fc.integer({ min: 1, max: 300 })),
        async (texts, answers, rooms, sizes) => {
          const stage = new Stage();
          stage.answers = answers;
          stage.room = rooms.shift() ?? Infinity;
          let source = `${texts.map((text) => chunk(text)).join('')}${chunk('', 'stop')}data: [DONE]\n\n`;
          while (source !== '' || !stage.end) {
            if (!stage.paused && source !== '') {
              const size = sizes.shift() ?? source.length;
              stage.feed(source.slice(0, size));
              source = source.slice(size);
            }
            await turn();
            if (stage.room <= 0) {
              stage.room = rooms.shift() ?? Infinity;
              stage.drain();
            }
            stage.allowance.onReady();
            await turn();
          }
          expect(stage.end).toMatchObject({ outcome: 'complete' });
          expect(stage.text).toBe(texts.join(''));
          expect(stage.heads).toBe(1);
        },
      ),
      { seed: SEED, leastRuns: 150 },
    );
  });

  it.each([
    ['ended', 'credit_ended'],
    ['lost', 'hold_lost'],
  ] as const)('delivers nothing that the allowance does not grant: %s', async (answer, outcome) => {
    const stage = new Stage();
    stage.answers = ['granted', 'granted', answer];
    stage.feed(chunk('a') + chunk('b') + chunk('c') + chunk('d'));
    await turn();
    expect(stage.end).toMatchObject({ outcome });
    expect(stage.aborted).toBe(true);
    expect([stage.text, stage.relay.delivered.tokens()]).toEqual(['ab', 2]);
    stage.feed(chunk('e') + chunk('', 'stop') + 'data: [DONE]\n\n');
    expect(stage.text).toBe('ab');
    if (outcome === 'credit_ended') expect(stage.relay.finish({}, false)).toContain('"finish_reason":"length"');
  });

  it.each([
    ['ended', 'credit_ended'],
    ['capped', 'capped'],
  ] as const)(
    'delivers the part of the last chunk that the hold covers, and ends with length: %s',
    async (answer, outcome) => {
      const stage = new Stage();
      stage.answers = ['granted', answer];
      stage.allowance.limit = 3;
      stage.feed(chunk('ab') + chunk('cdef', 'stop') + 'data: [DONE]\n\n');
      await turn();
      expect(stage.end).toMatchObject({ outcome, usage: null });
      expect([stage.text, stage.relay.delivered.tokens(), stage.aborted]).toEqual(['abc', 3, true]);
      expect(stage.out).not.toContain('"stop"');
      expect(stage.relay.finish({ total_tokens: 3 }, false)).toMatch(/"finish_reason":"length".*\[DONE\]\n\n$/s);
    },
  );

  it('writes nothing after the deadline of its hold, not even output that was waiting', async () => {
    const stage = new Stage();
    stage.feed(chunk('a'));
    stage.room = 1;
    stage.feed(chunk('b') + chunk('c'));
    stage.deadline.passed = true;
    stage.room = Infinity;
    stage.drain();
    stage.feed(chunk('d'));
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'hold_lost' });
    expect([stage.text, stage.relay.delivered.tokens(), stage.aborted]).toEqual(['abc', 3, true]);
  });

  it('fails if the backend sends a choice that was not requested', async () => {
    const stage = new Stage();
    stage.feed(chunk('a') + chunk('b').replace('"index":0', '"index":1'));
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'upstream_error' });
    expect(stage.text).toBe('a');
  });

  it('counts only written text for a client that leaves, not the text of the withheld chunk', async () => {
    const usage = { prompt_tokens: 1, completion_tokens: 4, total_tokens: 5 };
    const last = event({ choices: [choiceOf('cd', 'stop')], usage });
    const left = new Stage();
    left.feed(chunk('ab') + last);
    expect([left.text, left.relay.delivered.tokens(), left.relay.chunks]).toEqual(['ab', 2, 1]);
    left.relay.clientClosed();
    await turn();
    expect(left.end).toMatchObject({ outcome: 'client_closed', usage: null });
    expect(left.relay.delivered.tokens()).toBe(2);
    const stayed = new Stage();
    stayed.feed(chunk('ab') + last + 'data: [DONE]\n\n');
    expect(stayed.relay.delivered.tokens()).toBe(4);
    const nothingHeldBack = new Stage();
    nothingHeldBack.feed(chunk('ab') + last.replace('"cd"', '""'));
    nothingHeldBack.relay.clientClosed();
    await turn();
    expect(nothingHeldBack.end).toMatchObject({ outcome: 'client_closed', usage: { completionTokens: 4 } });
  });

  it('is complete if all choices are finished before the backend fails', async () => {
    const stage = new Stage();
    stage.feed(chunk('a') + chunk('', 'stop'));
    stage.relay.onFailure({ kind: 'failed', reason: 'reset' });
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'complete' });
  });
});

describe('the watch over streams', () => {
  it('sends a comment whenever nothing was written for ten seconds, before and after the first token', () => {
    const stage = new Stage();
    const watch = new StreamWatch();
    watch.add(stage.relay, 0, READER);
    watch.tick(9_999);
    expect(stage.out).toBe('');
    watch.tick(10_000);
    watch.tick(15_000);
    watch.tick(20_000);
    expect([stage.out, stage.heads]).toEqual([': keep-alive\n\n: keep-alive\n\n', 1]);
    const comments = () => stage.out.match(/^: keep-alive$/gm)?.length;
    stage.feed(chunk('a'));
    watch.tick(25_000);
    watch.tick(34_000);
    expect(comments()).toBe(2);
    watch.tick(35_000);
    expect(comments()).toBe(3);
    // A comment is between two events, never inside one.
    const [whole, half] = [chunk('b'), chunk('c')];
    stage.feed(whole + half.slice(0, 20));
    watch.tick(40_000);
    watch.tick(50_000);
    stage.feed(half.slice(20));
    expect([comments(), stage.text]).toEqual([4, 'abc']);
    watch.stop();
  });

  it('sends no comment to a client that does not read, nor after the end', async () => {
    const stage = new Stage();
    const watch = new StreamWatch();
    watch.add(stage.relay, Date.now(), READER);
    stage.room = 1;
    stage.feed(chunk('a'));
    watch.tick(Date.now() + 1_000);
    watch.tick(Date.now() + 30_000);
    stage.room = Infinity;
    stage.drain();
    stage.feed(chunk('', 'stop') + 'data: [DONE]\n\n');
    await turn();
    watch.tick(Date.now() + 60_000);
    expect(stage.out).not.toContain('keep-alive');
    watch.stop();
  });

  it('disconnects a client that has read nothing for two minutes since it was its turn', () => {
    const stage = new Stage();
    const watch = new StreamWatch();
    const client = { isQueued: true, destroy: jest.fn() };
    watch.add(stage.relay, Date.now(), client);
    stage.room = 1;
    stage.feed(chunk('a'));
    const turnMs = Date.now() + 500_000;
    // An earlier answer of its connection is still sent.
    watch.tick(turnMs);
    client.isQueued = false;
    watch.tick(turnMs + 119_000);
    expect(client.destroy).not.toHaveBeenCalled();
    watch.tick(turnMs + 121_000);
    expect(client.destroy).toHaveBeenCalledTimes(1);
    watch.remove(stage.relay);
    watch.stop();
  });
});
