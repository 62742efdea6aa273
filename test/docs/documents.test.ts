import { documents, misplaced, missing, overlong, textOf, unknownTerms } from './document';

it('looks at every document of the repository', () => {
  expect(documents()).toEqual(expect.arrayContaining(['apps/gateway/README.md', 'libs/admission/README.md']));
});

it('every path, file and heading that a document names exists', () => {
  expect(documents().flatMap((path) => missing(path, textOf(path)))).toEqual([]);
});

it('a name that a document finds in a file is there', () => {
  expect(documents().flatMap((path) => misplaced(path, textOf(path)))).toEqual([]);
});

it('the glossary names things as the code does', () => {
  expect(unknownTerms(textOf('docs/ARCHITECTURE.md'))).toEqual([]);
});

it('the steps of the pipeline have the numbers and names of ARCHITECTURE.md', () => {
  const pipeline = textOf('apps/gateway/src/inference/pipeline.ts');
  const steps = [...textOf('docs/ARCHITECTURE.md').matchAll(/^(\d+)\. \*\*([^*]+?)\.?\*\*/gm)]
    .map(([, number, name]) => ({ number: Number(number), line: `// ${number}. ${name}` }))
    .filter(({ number }) => number >= 3 && number <= 12);
  expect(steps).toHaveLength(10);
  expect(steps.map(({ line }) => line).filter((line) => !pipeline.includes(line))).toEqual([]);
});

it('prose is at most 100 columns wide, and a cell of a table has at most 120 characters', () => {
  expect(documents().flatMap((path) => overlong(path, textOf(path)))).toEqual([]);
});

describe('the check of names finds', () => {
  const named = (text: string, path = 'docs/a.md') => missing(path, text).map((line) => line.slice(path.length + 2));

  it.each([
    ['a file that is not there', 'see `apps/gateway/src/gone.ts`', 'apps/gateway/src/gone.ts'],
    ['a part of a name', 'see `test/gateway/money`', 'test/gateway/money'],
    ['a file without the folders before it', 'see `inference/pipeline.ts`', 'inference/pipeline.ts'],
    ['a pattern without a match', 'see `apps/*/src/gone-*.ts`', 'apps/*/src/gone-*.ts'],
    ['a path within a command', 'run `node tools/gone.mjs --json`', 'tools/gone.mjs'],
    ['a built file without a source', 'run `node apps/auth/dist/gone.js`', 'apps/auth/dist/gone.js'],
    ['a link to a file that is not there', 'see [this](gone.md)', 'gone.md'],
    ['a link to a heading that is not there', 'see [this](money.md#gone)', 'money.md#gone'],
    ['a heading of its own that is not there', '# Here\n\n[there](#there)', '#there'],
    ['a path that runs over the end of a line', 'see\n`apps/gone`,\nand [this\none](gone.md)', 'apps/gone'],
  ])('%s', (_, text, name) => expect(named(text)).toContain(name));

  it('a file of a package in its README', () => {
    expect(named('see `src/gone.ts`', 'apps/auth/README.md')).toEqual(['src/gone.ts']);
    expect(named('see `src/main.ts`', 'apps/auth/README.md')).toEqual([]);
  });

  it('nothing in what is there, and in what is no path', () => {
    const text = [
      '# Two `words`: here',
      'see `apps/gateway/src/inference/pipeline.ts`, `test/faults/nemesis`, `libs/*/src/index.ts`, `apps/<service>/README.md`,',
      '`node apps/auth/dist/main.js --migrate`, `application/json`, `usage/month`, `/docs/openapi.yaml`, [here](#two-words-here),',
      '[there](ARCHITECTURE.md#the-flow), [far away](https://example.com/gone.md)',
      '```sh',
      'cat apps/gone.ts # [gone](gone.md)',
      '```',
    ];
    expect(named(text.join('\n'))).toEqual([]);
  });
});

describe('the checks of names in the code find', () => {
  it('a name that its file does not have', () => {
    const file = 'libs/contracts/src/money.ts';
    expect(misplaced('docs/a.md', `\`gone\` in\n\`${file}\``)).toEqual([`docs/a.md: gone in ${file}`]);
    expect(misplaced('docs/a.md', `\`costNanos\` in \`${file}\``)).toEqual([]);
  });

  it('a term that the code calls otherwise', () => {
    const terms = '- **Here** (`costNanos`, topic `credit-news`): a.\n- **Gone** (`NoSuchClass`): b.';
    expect(unknownTerms(terms)).toEqual(['NoSuchClass']);
  });
});

describe('the check of widths finds', () => {
  const found = (text: string) => overlong('a.md', text);
  const long = 'a word '.repeat(20);

  it('a long line of prose and a long cell', () => {
    expect(found(`# Title\n\n${long}`)).toEqual([`a.md:3: ${long.length} columns`]);
    expect(found(`| a | b |\n| --- | --- |\n| short | ${long} |`)).toEqual(['a.md:3: a cell of 139 characters']);
  });

  it('nothing in code, in wide tables with short cells, and in URLs', () => {
    const cells = `| ${'a cell | '.repeat(40)}`;
    const url = `see https://example.com/${'a'.repeat(120)}`;
    expect(found(['```', long, '```', cells, url].join('\n'))).toEqual([]);
  });
});
