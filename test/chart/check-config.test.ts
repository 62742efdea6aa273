import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { componentOf, manifests, only, podOf, ROOT, variables, type Golden, type Manifest } from './manifests';

/** The folder of the pod. */
const MOUNTED = '/etc/tollgate';
/** The entry point of the image `tools`. */
const ENTRYPOINT = ['node', 'apps/cli/dist/main.js'];
const SECRET = 'operator-secret-of-the-gateways';

const podIn = (name: Golden, kind: string, component: string) => podOf(only(name, kind, component))!;
const hookOf = ({ metadata }: Manifest) => metadata.annotations?.['helm.sh/hook'];
const weightOf = ({ metadata }: Manifest) => Number(metadata.annotations!['helm.sh/hook-weight']);
/** Those that run before an install and an upgrade, in their order. */
const hooksOf = (name: Golden) =>
  manifests(name)
    .filter((each) => hookOf(each) === 'pre-install,pre-upgrade')
    .sort((a, b) => weightOf(a) - weightOf(b));
/** Where the files of a pod come from. */
const filesOf = (name: Golden, kind: string, component: string) => {
  const { containers, volumes } = podIn(name, kind, component);
  return { mounts: containers[0]!.volumeMounts, volumes: volumes!.filter(({ configMap }) => !configMap) };
};

describe.each(['ha', 'ingress'] as const)('%s: the job that checks tollgate.yaml', (name) => {
  it('runs before everything else', () => {
    const jobs = hooksOf(name).filter(({ kind }) => kind === 'Job');
    expect(jobs.map(({ metadata }) => metadata.name)[0]).toBe('tollgate-check-config');
    expect(jobs.filter((job) => weightOf(job) === weightOf(jobs[0]!))).toHaveLength(1);
  });

  it('reads the text that the services will read, before their ConfigMap has it', () => {
    const [service, job] = [podIn(name, 'Deployment', 'gateway'), podIn(name, 'Job', 'check-config')].map(
      (pod) => pod.volumes!.find((volume) => volume.name === 'config')!.configMap!.name,
    );
    // One of the operator's own is there before.
    if (service === job) return expect(manifests(name).some(({ metadata }) => metadata.name === service)).toBe(false);
    const [first] = hooksOf(name);
    expect(first).toMatchObject({ kind: 'ConfigMap', metadata: { name: job } });
    expect(first!.data).toEqual(only(name, 'ConfigMap', 'config').data);
  });

  it('has the files and the variables with which gateways read it', () => {
    expect(filesOf(name, 'Job', 'check-config')).toEqual(filesOf(name, 'Deployment', 'gateway'));
    const [gateway, job] = [podIn(name, 'Deployment', 'gateway'), podIn(name, 'Job', 'check-config')].map((pod) =>
      variables(pod.containers[0]!),
    );
    for (const variable of ['TOLLGATE_CONFIG', 'TOLLGATE_CONFIG_SECRETS_FILE'])
      expect(job![variable]).toBe(gateway![variable]);
    // One of the values files sets it in gateway.env.
    expect(job!['TOLLGATE_BODY_MEMORY_MIB']).toBe(gateway!['TOLLGATE_BODY_MEMORY_MIB']);
  });
});

describe('the command of the job', () => {
  let directory: string;
  let server: Server;
  let problems: string[];
  const asked: (string | undefined)[] = [];

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'tollgate-check-config-'));
    for (const folder of ['config', 'secrets']) mkdirSync(join(directory, folder));
    writeFileSync(join(directory, 'secrets/operator-secret'), `${SECRET}\n`);
    writeFileSync(join(directory, 'secrets/config-secrets'), 'MODEL_KEY=a-key\n');
    [problems, asked.length] = [[], 0];
    server = createServer((request, response) => {
      asked.push(request.headers.authorization);
      request.resume().on('end', () => response.end(JSON.stringify({ data: { problems } })));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  });
  afterEach(async () => {
    await new Promise((closed) => server.close(closed));
    rmSync(directory, { recursive: true });
  });

  /** Runs what the job of these values runs, with files of this test in the place of those of its pod. */
  function check(name: Golden, text: string): Promise<{ code: number; output: string }> {
    writeFileSync(join(directory, 'config/tollgate.yaml'), text);
    const container = podIn(name, 'Job', 'check-config').containers[0]!;
    const here = (word: string) => word.replaceAll(MOUNTED, directory);
    const [command, ...args] = [...(container.command ?? ENTRYPOINT), ...(container.args ?? [])].map(here);
    const env = Object.fromEntries(Object.entries(variables(container)).map(([key, value]) => [key, here(value!)]));
    if ('TOLLGATE_OPERATOR_URL' in env)
      env['TOLLGATE_OPERATOR_URL'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
    return new Promise((done) =>
      execFile(command!, args, { cwd: ROOT, env: { PATH, ...env } }, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` }),
      ),
    );
  }

  const config = () => only('dev', 'ConfigMap', 'config').data!['tollgate.yaml']!;

  it('does not exist where the jobs are no hooks, because Helm could not take back an upgrade that it fails', () => {
    const jobs = manifests('dev').filter(({ kind }) => kind === 'Job');
    expect(jobs.map(componentOf)).toEqual(expect.arrayContaining(['migrate-billing']));
    expect(jobs.map(componentOf)).not.toContain('check-config');
  });

  it('accepts the configuration of the trial, and asks the services that run, as their operator', async () => {
    expect(await check('ha', config())).toMatchObject({ code: 0, output: expect.stringMatching(/would accept it/) });
    expect(asked).toEqual([`Bearer ${SECRET}`]);
  });

  it('fails with the path and the line of what is wrong', async () => {
    const { code, output } = await check('ha', config().replace("output: '200'", 'output: free'));
    expect([code, output]).toEqual([1, expect.stringMatching(/tollgate\.yaml:7: models\[0\]\.price\.output: /)]);
  });

  it('fails if the services that run would refuse it', async () => {
    problems = ['plans: profile default of plan default is missing'];
    const { code, output } = await check('ha', config());
    expect([code, output]).toEqual([1, expect.stringMatching(/would refuse it: plans: profile default/)]);
  });

  it('finds secrets where gateways find them, and misses those that they would miss', async () => {
    const withKey = (name: string) =>
      config().replace("url: 'simulator:'", `url: 'http://gpu/v1', apiKey: '\${${name}}'`);
    expect(await check('ha', withKey('MODEL_KEY'))).toMatchObject({ code: 0 });
    expect(await check('ha', withKey('OTHER_KEY'))).toMatchObject({
      code: 1,
      output: expect.stringMatching(/OTHER_KEY is set neither in the environment nor in /),
    });
  });

  it('asks nobody where gateways have no Service for operators', async () => {
    expect(await check('ingress', config())).toMatchObject({ code: 0 });
    expect(asked).toEqual([]);
  });
});
