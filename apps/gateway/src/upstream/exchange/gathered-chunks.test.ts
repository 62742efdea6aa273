import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { GatheredChunks } from './gathered-chunks';

const SEED = 20_261_123;
const MIB = 1024 * 1024;
const turn = () => new Promise(setImmediate);

/** The blocks that were passed on, as texts. */
function gather(): { blocks: string[]; errors: Error[]; gathered: GatheredChunks } {
  const blocks: string[] = [];
  const errors: Error[] = [];
  const gathered = new GatheredChunks(
    (block) => blocks.push(block.toString('latin1')),
    (error) => errors.push(error),
  );
  return { blocks, errors, gathered };
}

describe('the gathered chunks of a stream', () => {
  it('arrive whole, in order and once, in one block for each turn', async () => {
    await assertRuns(
      fc.asyncProperty(
        fc.array(fc.array(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 40 }), { minLength: 1 })),
        async (turns) => {
          const one = gather();
          const other = gather();
          for (const chunks of turns) {
            for (const chunk of chunks) {
              one.gathered.add(Buffer.from(chunk, 'latin1'));
              other.gathered.add(Buffer.from(`x${chunk}`, 'latin1'));
            }
            await turn();
          }
          expect(one.blocks).toEqual(turns.map((chunks) => chunks.join('')));
          expect(other.blocks).toEqual(turns.map((chunks) => chunks.map((chunk) => `x${chunk}`).join('')));
        },
      ),
      { seed: SEED, leastRuns: 100 },
    );
  });

  it('arrive before the end of the answer, and not again after it', async () => {
    const { blocks, gathered } = gather();
    gathered.add(Buffer.from('a'));
    gathered.add(Buffer.from('b'));
    gathered.flush();
    expect(blocks).toEqual(['ab']);
    await turn();
    expect(blocks).toEqual(['ab']);
  });

  it('are at most one chunk above 256 KiB in memory', () => {
    const { blocks, gathered } = gather();
    for (let i = 0; i < 100; i += 1) gathered.add(Buffer.alloc(64 * 1024, 'a'));
    gathered.flush();
    expect(blocks.join('')).toHaveLength(100 * 64 * 1024);
    expect(Math.max(...blocks.map(({ length }) => length))).toBeLessThanOrEqual((256 + 64) * 1024);
    gathered.add(Buffer.alloc(MIB, 'b'));
    expect(blocks.at(-1)).toHaveLength(MIB);
  });

  it('tell a failure of their reader instead of ending the process', async () => {
    const errors: Error[] = [];
    const gathered = new GatheredChunks(
      () => {
        throw new Error('a bug');
      },
      (error) => errors.push(error),
    );
    gathered.add(Buffer.from('a'));
    await turn();
    expect(errors).toEqual([new Error('a bug')]);
  });
});
