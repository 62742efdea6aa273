import { chunk, event, Stage, turn } from './stream-stage.fixture';

const role = event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });

describe('a stream that fails before its first output', () => {
  it.each([
    ['an error event', role + event({ error: { message: 'out of memory' } })],
    ['an empty stream', 'data: [DONE]\n\n'],
    ['a stream that ends after its first chunk', role],
    ['a chunk that cannot be read', `${role}data: {\n\n`],
  ])('lets another backend answer after %s, of which the client sees nothing', async (_, bad) => {
    const stage = new Stage();
    stage.feed(bad);
    if (!stage.rejected) stage.relay.onEnd();
    expect([stage.rejected?.kind, stage.out, stage.heads, stage.works]).toEqual(['failed', '', 0, false]);
    stage.feed(role + chunk('Hello'));
    expect([stage.text, stage.heads, stage.works]).toEqual(['Hello', 1, true]);
    expect(stage.out.match(/assistant/g)).toHaveLength(1);
    stage.feed(chunk('', 'stop') + 'data: [DONE]\n\n');
    await turn();
    expect(stage.end).toMatchObject({ outcome: 'complete' });
  });

  it('lets no other backend answer after its first output, nor after all choices are finished', async () => {
    const begun = new Stage();
    begun.feed(role + chunk('Hello') + event({ error: {} }));
    await turn();
    expect([begun.rejected?.kind, begun.end?.outcome]).toEqual(['failed', 'upstream_error']);
    const finished = new Stage();
    finished.feed(role + chunk('', 'stop'));
    expect(finished.relay.mayRestart()).toBe(false);
    finished.relay.onFailure({ kind: 'timeout' });
    await turn();
    expect(finished.end?.outcome).toBe('complete');
    expect(finished.relay.finish({}, false)).toMatch(/assistant.*\n\n.*"stop".*\n\ndata: \[DONE\]/);
  });
});
