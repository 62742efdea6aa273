/** An address that a process listens on, with the names of its settings. */
export interface ListenAddress {
  setting: string;
  host: string;
  port: number;
}

const ALL_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/**
 * A line for each address with the port of one before it, where both cannot have it. 0 is any free port. Names
 * of hosts are compared as they are written.
 */
export function portConflicts(addresses: readonly ListenAddress[]): string[] {
  return addresses.flatMap(({ setting, host, port }, at) => {
    const taken = addresses
      .slice(0, at)
      .find((other) => other.port === port && port !== 0 && (other.host === host || isAll(other.host) || isAll(host)));
    return taken ? `${setting} must differ from ${taken.setting}: both are ${port}` : [];
  });
}

const isAll = (host: string): boolean => ALL_ADDRESSES.has(host);
