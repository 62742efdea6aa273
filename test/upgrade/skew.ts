import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';

/** Who wrote a part of a message: a process of the former version for one of this version, or the other way around. */
export type Direction = 'former asks' | 'now asks' | 'former replies' | 'now replies' | 'former sends' | 'now sends';
/** What one version writes and the other one cannot read, by its type. */
export interface Break {
  /** A subject or a topic. */
  name: string;
  direction: Direction;
  reason: string;
}

const ROOT = resolve(__dirname, '../..');
const VERSIONS = { now: 'libs/contracts/src', was: 'test/upgrade/former-version/contracts' } as const;
type Version = keyof typeof VERSIONS;
/** The tables of messages and requests, each in its file. */
const TABLES = { Subjects: 'subjects', TopicTypes: 'topics' } as const;
type Table = keyof typeof TABLES;

const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.base.json'), (path) => ts.sys.readFile(path));
const OPTIONS: ts.CompilerOptions = {
  ...ts.parseJsonConfigFileContent(config, ts.sys, ROOT).options,
  ...{ noUnusedLocals: false, module: ts.ModuleKind.Preserve, moduleResolution: ts.ModuleResolutionKind.Bundler },
};
/** A file that is only in memory. */
const CHECKS = join(ROOT, 'test/upgrade/skew-checks.ts');
const fileOf = (version: Version, table: Table) => join(ROOT, VERSIONS[version], TABLES[table]);
const HEAD = [
  ...Object.keys(TABLES).flatMap((table) =>
    Object.keys(VERSIONS).map(
      (version) =>
        `import type { ${table} as ${version}${table} } from '${fileOf(version as Version, table as Table)}';`,
    ),
  ),
  // What a reader of JSON cannot tell apart.
  'type Wire<T> = T extends readonly (infer E)[] ? Wire<E>[] :',
  '  T extends object ? { -readonly [K in keyof T]: Wire<T[K]> } : T;',
];

/**
 * Compares the messages and requests of the former version with those of this one, by the compiler: what one version
 * writes must have the type that the other one reads.
 */
export class Skew {
  readonly names: Readonly<Record<Table, Readonly<Record<Version, readonly string[]>>>>;

  constructor() {
    const program = compile(HEAD.join('\n'));
    const checker = program.getTypeChecker();
    const namesOf = (table: Table, version: Version) => {
      const file = program.getSourceFiles().find((one) => one.fileName.startsWith(`${fileOf(version, table)}.`));
      const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(file!)!);
      const type = checker.getDeclaredTypeOfSymbol(symbols.find(({ name }) => name === table)!);
      return type.getProperties().map(({ name }) => name);
    };
    const versions = (table: Table) => ({ now: namesOf(table, 'now'), was: namesOf(table, 'was') });
    this.names = { Subjects: versions('Subjects'), TopicTypes: versions('TopicTypes') };
  }

  /** What both versions have and do not mean the same by. */
  breaks(): Break[] {
    const checks: { name: string; direction: Direction; line: string }[] = [];
    const check = (name: string, direction: Direction, table: Table, part = '') => {
      const [from, to]: Version[] = direction.startsWith('former') ? ['was', 'now'] : ['now', 'was'];
      const type = (version: Version) => `Wire<${version}${table}['${name}']${part}>`;
      checks.push({ name, direction, line: `export const c${checks.length}: ${type(to!)} = null! as ${type(from!)};` });
    };
    for (const name of this.common('Subjects')) {
      for (const direction of ['former asks', 'now asks'] as const) check(name, direction, 'Subjects', '[0]');
      for (const direction of ['former replies', 'now replies'] as const) check(name, direction, 'Subjects', '[1]');
    }
    for (const name of this.common('TopicTypes'))
      for (const direction of ['former sends', 'now sends'] as const) check(name, direction, 'TopicTypes');
    const program = compile([...HEAD, ...checks.map(({ line }) => line)].join('\n'));
    return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
      const reason = ts.flattenDiagnosticMessageText(messageText, '\n');
      const found = file?.fileName === CHECKS && checks[file.getLineAndCharacterOfPosition(start!).line - HEAD.length];
      if (!found) throw new Error(`${file?.fileName}: ${reason}`);
      return { name: found.name, direction: found.direction, reason };
    });
  }

  private common(table: Table): string[] {
    return this.names[table].was.filter((name) => this.names[table].now.includes(name));
  }
}

function compile(text: string): ts.Program {
  const host = ts.createCompilerHost(OPTIONS);
  const [getSourceFile, fileExists] = [host.getSourceFile.bind(host), host.fileExists.bind(host)];
  host.getSourceFile = (name, version, ...more) =>
    name === CHECKS ? ts.createSourceFile(name, text, version, true) : getSourceFile(name, version, ...more);
  host.fileExists = (name) => name === CHECKS || fileExists(name);
  host.readFile = (name) => (name === CHECKS ? text : readFileSync(name, 'utf8'));
  return ts.createProgram([CHECKS], OPTIONS, host);
}
