import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ImageName, getContainerRuntimeClient } from 'testcontainers';
import { eventually } from '../eventually';
import { freePort } from './free-port';

/** The longest that a server may take from its start to its first answer, and so a hook's limit. */
export const READY_TIMEOUT_MS = 90_000;
const READY_EVERY_MS = 50;
/** A server that runs and has not answered for this long gets a new connection to its network. */
const REATTACH_AFTER_MS = 30_000;
const MAX_PORT_CLASHES = 5;
const STOP_GRACE_S = 20;
const PAUSE_TIMEOUT_MS = 10_000;
/** Names the Jest run that a container belongs to: test/setup/docker.mjs removes what killed runs leave. */
const RUN_LABEL = 'tollgate.test.run';

export interface ContainerSpec {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  /** Path in the container to content; readable by everyone, not writable. */
  files?: Record<string, string>;
  /** Ports of the container, published on 127.0.0.1 under the same numbers. */
  ports?: number[];
  /** Lives in this container's network instead of one of its own. */
  networkOf?: TestContainer;
  /** Throws until the server really answers. Each call must be bounded. */
  ready?: () => Promise<void>;
}

/**
 * One real server in a container, with what fault tests do to it. Its ports are the same through stop, kill and start.
 * `specOf` is asked again with fresh ports when one was taken in between.
 */
export class TestContainer {
  private spec: ContainerSpec | undefined;
  private id: string | undefined;
  /** Of the files that it sees. */
  private folder: string | undefined;

  constructor(
    private readonly specOf: (ports: number[]) => ContainerSpec,
    private readonly portCount = 1,
  ) {}

  /** Its first port on 127.0.0.1. */
  get port(): number {
    const port = this.running().spec.ports?.[0];
    if (port === undefined) throw new Error('this container publishes no port');
    return port;
  }

  get ports(): number[] {
    return this.running().spec.ports ?? [];
  }

  /** Creates and starts it, and waits until it answers. */
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

  /** Freezes its processes: connections stay open, nothing answers. */
  async pause(): Promise<void> {
    const container = await this.container();
    // On a busy machine the engine may not get hold of all of them at once ("unable to freeze"): then they all go on.
    await eventually(() => container.pause(), { timeoutMs: PAUSE_TIMEOUT_MS });
  }

  async unpause(): Promise<void> {
    await (await this.container()).unpause();
  }

  /** Ends it at once, as a crash would. Data that reached its disk stays. */
  async kill(): Promise<void> {
    await (await this.container()).kill();
  }

  /** Ends it in order, at most 20 s. */
  async stop(): Promise<void> {
    await (await this.container()).stop({ t: STOP_GRACE_S });
  }

  /** After stop or kill: with the same data and ports, and waits until it answers. */
  async start(): Promise<void> {
    await (await this.container()).start();
    await this.ready();
  }

  /** Cuts it off from everyone: open connections break, new ones are refused. */
  async disconnect(): Promise<void> {
    await (await this.bridge()).disconnect({ Container: this.running().id, Force: true });
  }

  /** Undoes `disconnect`, and waits until it answers. */
  async connect(): Promise<void> {
    await (await this.bridge()).connect({ Container: this.running().id });
    await this.ready();
  }

  /** Runs a command inside and returns its output. Throws with it when the command fails. */
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

  /** With its data. May be called in any state, also twice. */
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
   * Waits until it answers. Docker now and then gives two containers the same address, so that nothing reaches one of
   * them (moby/moby#44010): after 30 s of silence the container gets a new address.
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
        // Over with the waiting: it will not come back by itself.
        return state;
      },
      { timeoutMs, everyMs: READY_EVERY_MS },
    );
    if (!state.Running) throw new Error(`it ended with exit code ${state.ExitCode}`);
  }

  private async state() {
    return (await (await this.container()).inspect()).State;
  }

  /** Of all containers on the bridge, for the log. */
  private async addresses(): Promise<string> {
    const { Containers = {} } = (await (await this.bridge()).inspect()) as NetworkContainers;
    const of = Object.entries(Containers).map(([id, { IPv4Address }]) => `${id.slice(0, 12)} ${IPv4Address}`);
    return `it is ${this.running().id.slice(0, 12)} among ${of.join(', ')}`;
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
    if (this.id === undefined || !this.spec)
      throw new Error('the container has not been started: it is there from beforeAll to afterAll');
    return { id: this.id, spec: this.spec };
  }
}

interface NetworkContainers {
  Containers?: Record<string, { IPv4Address: string }>;
}

/** Starts the container before the calling file's tests and removes it after them. */
export function useContainer<T extends TestContainer>(container: T): T {
  beforeAll(() => container.create());
  afterAll(() => container.remove());
  return container;
}
