import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const ROOT = resolve(__dirname, '../..');
const CONFIG = '/etc/tollgate/tollgate.yaml';
const NOW = 'models: [new]\n';
const FORMER = 'models: [old]\n';
const LONG_AGO = '2020-01-01T00:00:00Z';
const LATER = '2999-01-01T00:00:00Z';

interface Container {
  id: string;
  service: string;
  /** tollgate.yaml inside. Undefined: the container has ended. */
  config?: string;
  mounts?: string[];
  startedAt?: string;
}

// Replaced: Docker, by a script that knows these containers. stack.docker.test.ts has the real one.
describe('npm run stack restarts the containers', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'tollgate-outdated-'));
    mkdirSync(join(home, 'secrets'));
    writeFileSync(join(home, 'secrets/operator-secret'), 'secret');
    writeFileSync(join(home, 'tollgate.yaml'), NOW);
  });
  afterEach(() => rmSync(home, { recursive: true }));

  function outdated(containers: Container[]): string[] {
    const inspected = containers.map(({ id, service, mounts = [CONFIG], startedAt = LATER }) => ({
      Id: id,
      Config: { Labels: { 'com.docker.compose.service': service } },
      Mounts: mounts.map((path) => ({ Destination: path })),
      State: { StartedAt: startedAt },
    }));
    writeFileSync(join(home, 'ids'), containers.map(({ id }) => `${id}\n`).join(''));
    writeFileSync(join(home, 'inspected'), JSON.stringify(inspected));
    for (const { id, config } of containers) if (config !== undefined) writeFileSync(join(home, `in-${id}`), config);
    const docker = `#!/bin/sh
      case "$1 $2" in
        'compose ps') cat '${home}/ids' ;;
        'inspect '*) cat '${home}/inspected' ;;
        'exec '*) [ "$3 $4" = 'cat ${CONFIG}' ] && cat '${home}'/in-"$2" ;;
        *) exit 1 ;;
      esac`;
    writeFileSync(join(home, 'docker'), docker, { mode: 0o755 });
    const settings = { configFile: join(home, 'tollgate.yaml'), compose: { TOLLGATE_SECRETS: join(home, 'secrets') } };
    const script = `import { outdatedContainers } from '${pathToFileURL(join(ROOT, 'tools/stack/restart.mjs')).href}';
      console.log(JSON.stringify(await outdatedContainers(${JSON.stringify(settings)})));`;
    const env = { ...process.env, PATH: `${home}${delimiter}${process.env['PATH']}` };
    const answer = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { env, encoding: 'utf8' });
    return JSON.parse(answer) as string[];
  }

  it('that have the tollgate.yaml of before an editor replaced it, the gateways last', () => {
    const found = outdated([
      { id: 'a', service: 'gateway', config: FORMER },
      { id: 'b', service: 'gateway', config: NOW },
      { id: 'c', service: 'billing', config: FORMER },
      { id: 'd', service: 'auth', config: NOW },
    ]);
    expect(found).toEqual(['c', 'a']);
  });

  it('but none that ended, that has no tollgate.yaml or that is no service', () => {
    const found = outdated([
      { id: 'a', service: 'gateway' },
      { id: 'b', service: 'functions', config: FORMER, mounts: [] },
      { id: 'c', service: 'migrate-billing', config: FORMER },
    ]);
    expect(found).toEqual([]);
  });

  it('that started before one of their secrets changed', () => {
    const mounts = ['/run/secrets/operator-secret', CONFIG];
    const found = outdated([
      { id: 'a', service: 'gateway', config: NOW, mounts, startedAt: LONG_AGO },
      { id: 'b', service: 'gateway', config: NOW, mounts },
    ]);
    expect(found).toEqual(['a']);
  });
});
