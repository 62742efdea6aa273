/** An address that a process listens on, with the names of its settings. */
export interface Door {
  setting: string;
  host: string;
  port: number;
}

const ALL_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/**
 * A line for each door with the port of one before it, where both addresses cannot have it. 0 is any free port. Names
 * of hosts are compared as they are written.
 */
export function portConflicts(doors: readonly Door[]): string[] {
  return doors.flatMap(({ setting, host, port }, at) => {
    const taken = doors
      .slice(0, at)
      .find((other) => other.port === port && port !== 0 && (other.host === host || isAll(other.host) || isAll(host)));
    return taken ? `${setting} must differ from ${taken.setting}: both are ${port}` : [];
  });
}

const isAll = (host: string): boolean => ALL_ADDRESSES.has(host);
