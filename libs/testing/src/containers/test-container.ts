import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ImageName, getContainerRuntimeClient } from 'testcontainers';
import { eventually } from '../eventually';
import { freePort } from './free-port';

/** The limit from the start of a server to its first answer, and therefore of a hook. */
export const READY_TIMEOUT_MS = 90_000;
const READY_EVERY_MS = 50;
/** A running server that has not answered within this time is connected to its network again. */
const REATTACH_AFTER_MS = 30_000;
const MAX_PORT_CLASHES = 5;
const STOP_GRACE_S = 20;
const PAUSE_TIMEOUT_MS = 10_000;
/** The Jest run that owns a container. test/setup/docker.mjs removes the containers of killed runs. */
const RUN_LABEL = 'tollgate.test.run';

export interface ContainerSpec {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  /** Read-only files that every user may read: path in the container to content. */
  files?: Record<string, string>;
  /** Ports of the container, published on 127.0.0.1 with the same numbers. */
  ports?: number[];
  /** Uses the network of this container instead of its own. */
  networkOf?: TestContainer;
  /** Throws until the server answers in its protocol. Each call must be bounded. */
  ready?: () => Promise<void>;
}

/**
 * A real server in a container, with the operations of fault tests. It keeps its ports through stop, kill and start.
 * If a port is taken, `specOf` is called again with new ports.
 */
export class TestContainer {
  private spec: ContainerSpec | undefined;
  private id: string | undefined;
  /** The folder of the mounted files. */
  private folder: string | undefined;

  constructor(
    private readonly specOf: (ports: number[]) => ContainerSpec,
    private readonly portCount = 1,
  ) {}

  /** The first port on 127.0.0.1. */
  get port(): number {
    const port = this.running().spec.ports?.[0];
    if (port === undefined) throw new Error('this container publishes no port');
    return port;
  }

  get ports(): number[] {
    return this.running().spec.ports ?? [];
  }

  /** Creates and starts the container, and waits until the server answers. */
  async create(): Promise<void> {
    for (let clashes = 0; ; clashes++) {
      const ports = new Set<number>();
      while (ports.size < this.portCount) ports.add(await freePort());
      this.spec = this.specOf([...ports]);
      try {
        await this.createOnce(this.spec);
        return await this.ready();
      } catch (error) {
        const log = await this.logs().catch((reason: unknown) => `no log: ${String(reason)}`);
        await this.remove();
        if (/port is already allocated|address already in use/.test(String(error)) && clashes < MAX_PORT_CLASHES)
          continue;
        throw new Error(
          `${this.spec.image} did not start: ${String(error)}\n${log.split('\n').slice(-20).join('\n')}`,
          { cause: error },
        );
      }
    }
  }

  /** Freezes all processes. Connections stay open, and no request is answered. */
  async pause(): Promise<void> {
    const container = await this.container();
    // On a busy machine the engine may fail to freeze all of them ("unable to freeze"). Then all of them continue.
    await eventually(() => container.pause(), { timeoutMs: PAUSE_TIMEOUT_MS });
  }

  async unpause(): Promise<void> {
    await (await this.container()).unpause();
  }

  /** Ends the server at once, like a crash. The data on its disk stay. */
  async kill(): Promise<void> {
    await (await this.container()).kill();
  }

  /** Ends the server in order, within 20 s. */
  async stop(): Promise<void> {
    await (await this.container()).stop({ t: STOP_GRACE_S });
  }

  /** Starts the server after stop or kill, with the same data and ports, and waits until it answers. */
  async start(): Promise<void> {
    await (await this.container()).start();
    await this.ready();
  }

  /** Disconnects the container from its network: open connections break, and new ones are refused. */
  async disconnect(): Promise<void> {
    await (await this.bridge()).disconnect({ Container: this.running().id, Force: true });
  }

  /** Undoes `disconnect`, and waits until the server answers. */
  async connect(): Promise<void> {
    await (await this.bridge()).connect({ Container: this.running().id });
    await this.ready();
  }

  /** Runs a command in the container and returns its output. Throws an error with the output if the command fails. */
  async exec(command: string[]): Promise<string> {
    const { container } = await getContainerRuntimeClient();
    const { output, exitCode } = await container.exec(await this.container(), command, { log: false });
    if (exitCode !== 0) throw new Error(`${command.join(' ')} failed (${exitCode}): ${output}`);
    return output;
  }

  async logs(): Promise<string> {
    const log = await (await this.container()).logs({ stdout: true, stderr: true, follow: false });
    return log.toString('utf8');
  }

  /** Removes the container with its data. May be called in any state, also twice. */
  async remove(): Promise<void> {
    if (this.id === undefined) return;
    const container = await this.container();
    this.id = undefined;
    await container.remove({ force: true, v: true });
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true });
    this.folder = undefined;
  }

  private async createOnce(spec: ContainerSpec): Promise<void> {
    const client = await getContainerRuntimeClient();
    await client.image.pull(ImageName.fromString(spec.image));
    const ports = (spec.ports ?? []).map((port) => `${port}/tcp`);
    const created = await client.container.create({
      Image: spec.image,
      ...(spec.command ? { Cmd: spec.command } : {}),
      Env: Object.entries(spec.environment ?? {}).map(([name, value]) => `${name}=${value}`),
      Labels: { [RUN_LABEL]: process.env['TOLLGATE_TEST_RUN'] ?? '' },
      ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
      HostConfig: {
        PortBindings: Object.fromEntries(
          ports.map((port) => [port, [{ HostIp: '127.0.0.1', HostPort: port.slice(0, -4) }]]),
        ),
        Binds: Object.entries(spec.files ?? {}).map(
          ([path, content], index) => `${this.keep(index, content)}:${path}:ro`,
        ),
        ...(spec.networkOf ? { NetworkMode: `container:${spec.networkOf.running().id}` } : {}),
      },
    });
    this.id = created.id;
    await created.start();
  }

  private keep(index: number, content: string): string {
    this.folder ??= mkdtempSync(join(tmpdir(), 'tollgate-container-'));
    const file = join(this.folder, String(index));
    writeFileSync(file, content);
    return file;
  }

  /**
   * Waits until the server answers. Docker sometimes gives two containers the same address, and then one of them is
   * unreachable (moby/moby#44010). So the container gets a new address after 30 s of silence.
   */
  private async ready(): Promise<void> {
    const { ready, networkOf } = this.running().spec;
    if (!ready) return;
    try {
      await this.answers(ready, REATTACH_AFTER_MS);
    } catch (error) {
      if (networkOf || !(await this.state()).Running) throw error;
      const before = await this.addresses();
      await this.disconnect();
      await (await this.bridge()).connect({ Container: this.running().id });
      process.stderr.write(`${this.running().spec.image} did not answer (${String(error)}): ${before}, reattached\n`);
      await this.answers(ready, READY_TIMEOUT_MS - REATTACH_AFTER_MS);
    }
  }

  private async answers(ready: () => Promise<void>, timeoutMs: number): Promise<void> {
    const state = await eventually(
      async () => {
        const state = await this.state();
        if (state.Running) await ready();
        // Stop waiting: the container has ended.
        return state;
      },
      { timeoutMs, everyMs: READY_EVERY_MS },
    );
    if (!state.Running) throw new Error(`the container ended with exit code ${state.ExitCode}`);
  }

  private async state() {
    return (await (await this.container()).inspect()).State;
  }

  /** The addresses of all containers on the bridge, for the log. */
  private async addresses(): Promise<string> {
    const { Containers = {} } = (await (await this.bridge()).inspect()) as NetworkContainers;
    const of = Object.entries(Containers).map(([id, { IPv4Address }]) => `${id.slice(0, 12)} ${IPv4Address}`);
    return `container ${this.running().id.slice(0, 12)} among ${of.join(', ')}`;
  }

  private async container() {
    const { container } = await getContainerRuntimeClient();
    return container.getById(this.running().id);
  }

  private async bridge() {
    const { network } = await getContainerRuntimeClient();
    return network.getById('bridge');
  }

  private running(): { id: string; spec: ContainerSpec } {
    if (this.id === undefined || !this.spec) throw new Error('The container runs only between beforeAll and afterAll.');
    return { id: this.id, spec: this.spec };
  }
}

interface NetworkContainers {
  Containers?: Record<string, { IPv4Address: string }>;
}

/** Starts the container before the tests of the calling file and removes it after them. */
export function useContainer<T extends TestContainer>(container: T): T {
  beforeAll(() => container.create());
  afterAll(() => container.remove());
  return container;
}
