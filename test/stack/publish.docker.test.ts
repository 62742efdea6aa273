import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { LocalRegistry } from './local-registry';

const ROOT = resolve(__dirname, '../..');
const SOURCE = 'https://example.com/acme/tollgate';
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** The smallest image. */
const TARGET = 'simulator';
const PATH = 'acme/tollgate';
/** The platform of this machine alone, also where the builder could build for others. */
const PLATFORM = ['--platforms', `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`];
/** A first build downloads packages. */
const BUILD_TIMEOUT_MS = 600_000;

const registry = new LocalRegistry();
/** A clean checkout of what is in this working tree. */
const checkout = mkdtempSync(join(tmpdir(), 'tollgate-publish-'));
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args], {
    cwd: checkout,
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT_BYTES,
  });
const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, string>;
let prefix: string;

/** Runs the script. Returns its exit code and output. */
function publish(...args: string[]): Promise<{ code: number; output: string }> {
  // The base image is made already, if it is one of ours. The checkout has no packages to make it from.
  const { TOLLGATE_IMAGES: images = 'official', ...inherited } = process.env;
  const bases = parseEnv(readFileSync(join(ROOT, `deploy/images/${images}.env`), 'utf8'));
  const url = `https://user:secret@${SOURCE.slice('https://'.length)}.git`;
  const env = { ...bases, ...inherited, TOLLGATE_SOURCE_URL: url };
  return new Promise((done) => {
    const options = { cwd: checkout, env, maxBuffer: MAX_OUTPUT_BYTES };
    execFile(join(checkout, 'deploy/publish.sh'), args, options, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code ?? 1) : 0, output: `${stdout}${stderr}` }),
    );
  });
}

beforeAll(async () => {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  for (const file of files.split('\0').filter((name) => name !== '' && existsSync(join(ROOT, name))))
    cpSync(join(ROOT, file), join(checkout, file), { verbatimSymlinks: true });
  git('init', '--quiet');
  git('add', '--all', '--force');
  git('commit', '--quiet', '--message', 'A version');
  prefix = `${await registry.start()}/${PATH}`;
});
afterAll(async () => {
  execFileSync('docker', ['image', 'rm', '--force', `${prefix}/${TARGET}:${version}`], { stdio: 'ignore' });
  await registry.stop();
  rmSync(checkout, { recursive: true });
});

describe('deploy/publish.sh', () => {
  it.each([['Acme/tollgate'], ['https://registry/acme'], ['registry']])('refuses %s as a place', async (place) => {
    expect(await publish('--dry-run', place)).toMatchObject({ code: 1, output: expect.stringContaining(place) });
  });

  it('refuses files that are not committed', async () => {
    writeFileSync(join(checkout, 'note.txt'), 'mine');
    try {
      const { code, output } = await publish(...PLATFORM, prefix, TARGET);
      expect([code, output]).toEqual([1, expect.stringContaining('not committed')]);
    } finally {
      rmSync(join(checkout, 'note.txt'));
    }
  });

  it('says what it would do, for all images, and does nothing', async () => {
    const { code, output } = await publish('--dry-run', prefix);
    expect(code).toBe(0);
    const lines = output.trim().split('\n');
    const of = (word: string) =>
      lines.filter((line) => line.includes(word)).map((line) => /[\w-]+:[\w.-]+$/.exec(line)?.[0]);
    const all = ['gateway', 'auth', 'metering', 'billing', 'console', 'simulator', 'tools'];
    if (output.includes('docker push')) expect(of('docker push')).toEqual(all.map((target) => `${target}:${version}`));
    else expect(lines.filter((line) => line.endsWith('--push'))).toHaveLength(all.length);
    expect(lines.filter((line) => line.includes('deploy/sbom.mjs'))).toHaveLength(all.length);
    expect(output).not.toContain('secret');
    expect(existsSync(join(checkout, 'sbom'))).toBe(false);
    expect(registry.tags).toEqual([]);
  });

  it(
    'pushes an image with labels, and writes its bill of materials',
    async () => {
      const { code, output } = await publish(...PLATFORM, prefix, TARGET);
      expect([code, code === 0 ? '' : output]).toEqual([0, '']);
      expect(registry.tags).toEqual([`${PATH}/${TARGET}:${version}`]);
      const { config, layers } = registry.image(registry.tags[0]!);
      expect(layers.length).toBeGreaterThan(2);
      const label = (name: string) => config.config.Labels[`org.opencontainers.image.${name}`];
      expect(['source', 'revision', 'version', 'licenses', 'title'].map(label)).toEqual([
        ...[SOURCE, git('rev-parse', 'HEAD').trim(), version, license, `tollgate/${TARGET}`],
      ]);
      expect(Date.parse(label('created')!)).toBe(Number(git('show', '-s', '--format=%ct', 'HEAD')) * 1_000);

      const bill = JSON.parse(readFileSync(join(checkout, `sbom/${TARGET}.cdx.json`), 'utf8')) as {
        bomFormat: string;
        metadata: { component: { version: string } };
        components: { name: string; version: string; purl: string; 'bom-ref': string }[];
      };
      expect([bill.bomFormat, bill.metadata.component.version]).toEqual(['CycloneDX', version]);
      const purls = bill.components.map(({ purl }) => purl);
      expect(new Set(purls).size).toBe(purls.length);
      expect(purls).toEqual(
        expect.arrayContaining([
          `pkg:npm/%40tollgate/${TARGET}@${version}`,
          expect.stringMatching(/^pkg:npm\/npm@\d/),
          expect.stringMatching(/^pkg:deb\/debian\/libc6@.*arch=/),
          expect.stringMatching(/^pkg:generic\/node@2\d\./),
        ]),
      );
    },
    BUILD_TIMEOUT_MS,
  );

  it('refuses a version that the registry has', async () => {
    const { code, output } = await publish(...PLATFORM, prefix, TARGET);
    expect([code, output]).toEqual([1, expect.stringContaining('exists already')]);
  });
});
