import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMON_STOP_SEQUENCES, commonBounds, DIALECT_BOUNDS, MAX_STOP_SEQUENCES } from './dialect-bounds';
import { DIALECTS } from './request-fields';

describe('what backends take together', () => {
  it('is what each of them takes', () => {
    expect(commonBounds(['vllm', 'sglang'])).toEqual(DIALECT_BOUNDS.vllm);
    const { any, openai } = DIALECT_BOUNDS;
    expect(commonBounds(['vllm', 'openai'])).toEqual({ ...openai, file: false });
    expect(commonBounds(['vllm', 'any'])).toEqual({ ...any, file: false });
    expect(commonBounds(['sglang', 'tgi', 'vllm'])).toEqual(DIALECT_BOUNDS.tgi);
  });

  it('is the table of docs/forwarding.md', () => {
    const page = readFileSync(join(__dirname, '../../../docs/forwarding.md'), 'utf8');
    const row = (dialect: keyof typeof DIALECT_BOUNDS) => {
      const { stopSequences, dottedNames, video, file } = DIALECT_BOUNDS[dialect];
      const name = dialect === 'any' ? 'none' : `\`${dialect}\``;
      return [name, stopSequences, ...[dottedNames, video, file].map((taken) => (taken ? 'yes' : 'no'))].join(' | ');
    };
    const rows = page.split('\n').map((line) => line.replace(/\s+/g, ' ').replace(/^\| | \|$/g, ''));
    for (const dialect of ['any', ...DIALECTS] as const) expect(rows).toContain(row(dialect));
    expect(page).toContain(`up to ${COMMON_STOP_SEQUENCES} stop sequences`);
    expect(page).toContain(`${MAX_STOP_SEQUENCES} is the limit`);
  });
});
