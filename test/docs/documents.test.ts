import { documents, misplaced, missing, overlong, ruleRows, textOf, unknownTerms } from './document';

it('every document of the repository is checked', () => {
  expect(documents()).toEqual(expect.arrayContaining(['apps/gateway/README.md', 'libs/admission/README.md']));
});

it('every path, file and heading that a document names exists', () => {
  expect(documents().flatMap((path) => missing(path, textOf(path)))).toEqual([]);
});

it('every name that a document places in a file is in that file', () => {
  expect(documents().flatMap((path) => misplaced(path, textOf(path)))).toEqual([]);
});

it('each rule of ARCHITECTURE.md names the function or value that decides it', () => {
  const rows = ruleRows(textOf('docs/ARCHITECTURE.md').split('\n## Rules\n')[1]!);
  expect(rows.length).toBeGreaterThan(50);
  const named = /^`[\w.]+` in `[^`]+`(, `[\w.]+` in `[^`]+`)*$/;
  expect(rows.filter(({ where }) => !named.test(where))).toEqual([]);
});

it('each rule stands in one table', () => {
  const questions = ['docs/ARCHITECTURE.md', 'docs/architecture-rules.md'].flatMap((path) =>
    ruleRows(textOf(path)).map(({ question }) => question),
  );
  expect(questions.length).toBeGreaterThan(200);
  expect(questions.filter((question, index) => questions.indexOf(question) !== index)).toEqual([]);
});

it('the names in the glossary are names in the code', () => {
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
    ['a missing file', 'see `apps/gateway/src/gone.ts`', 'apps/gateway/src/gone.ts'],
    ['a part of a name', 'see `test/gateway/money`', 'test/gateway/money'],
    ['a file without the folders before it', 'see `inference/pipeline.ts`', 'inference/pipeline.ts'],
    ['a pattern without a match', 'see `apps/*/src/gone-*.ts`', 'apps/*/src/gone-*.ts'],
    [
      'one of several names without a file',
      'see `libs/messaging/src/{postgres,kafka}/group-consumer.ts`',
      'libs/messaging/src/{postgres,kafka}/group-consumer.ts',
    ],
    ['a path within a command', 'run `node tools/gone.mjs --json`', 'tools/gone.mjs'],
    ['a built file without a source', 'run `node apps/auth/dist/gone.js`', 'apps/auth/dist/gone.js'],
    ['a link to a missing file', 'see [this](gone.md)', 'gone.md'],
    ['a link to a missing heading', 'see [this](money.md#gone)', 'money.md#gone'],
    ['a link to a missing heading of the same document', '# Here\n\n[there](#there)', '#there'],
    ['a path that continues on the next line', 'see\n`apps/gone`,\nand [this\none](gone.md)', 'apps/gone'],
  ])('%s', (_, text, name) => expect(named(text)).toContain(name));

  it('a file of a package in its README', () => {
    expect(named('see `src/gone.ts`', 'apps/auth/README.md')).toEqual(['src/gone.ts']);
    expect(named('see `src/main.ts`', 'apps/auth/README.md')).toEqual([]);
  });

  it('nothing in existing paths and in texts that are not paths', () => {
    const text = [
      '# Two `words`: here',
      'see `apps/gateway/src/inference/pipeline.ts`, `test/faults/nemesis`, `libs/*/src/index.ts`,',
      '`apps/<service>/README.md`, `node apps/auth/dist/main.js --migrate`, `application/json`,',
      '`usage/month`, `/docs/openapi.yaml`, [here](#two-words-here),',
      '[there](ARCHITECTURE.md#the-flow), [far away](https://example.com/gone.md)',
      '```sh',
      'cat apps/gone.ts # [gone](gone.md)',
      '```',
    ];
    expect(named(text.join('\n'))).toEqual([]);
  });
});

describe('the checks of names in the code find', () => {
  it('a name that is not in its file', () => {
    const file = 'libs/contracts/src/money.ts';
    expect(misplaced('docs/a.md', `\`gone\` in\n\`${file}\``)).toEqual([`docs/a.md: gone in ${file}`]);
    expect(misplaced('docs/a.md', `\`costNanos\` in \`${file}\``)).toEqual([]);
  });

  it('a name that is not in each file of a pattern', () => {
    const where = 'libs/contracts/src/{money,credentials}.ts';
    const found = ['docs/a.md: costNanos in libs/contracts/src/credentials.ts'];
    expect(misplaced('docs/a.md', `\`costNanos\` in \`${where}\``)).toEqual(found);
  });

  it('a term with another name in the code', () => {
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

  it('nothing in code, wide tables with short cells, and URLs', () => {
    const cells = `| ${'a cell | '.repeat(40)}`;
    const url = `see https://example.com/${'a'.repeat(120)}`;
    expect(found(['```', long, '```', cells, url].join('\n'))).toEqual([]);
  });
});
