import type { AddressInfo, Server } from 'node:net';

/**
 * A start failed for a reason that the operator can fix. `message` is shown as it is: a line for each problem, with its
 * cure.
 */
export class StartError extends Error {}

/** The names of the settings for a listening address. */
export interface AddressSettings {
  host: string;
  port: string;
}

/** Opens the port of a server, and returns it. Rejects with StartError when it cannot be opened. */
export async function openPort(server: Server, host: string, port: number, settings: AddressSettings): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  } catch (error) {
    throw explainListen(error, host, port, settings);
  }
  return (server.address() as AddressInfo).port;
}

/** Converts the error of a port that cannot be opened to its line. Returns other errors unchanged. */
export function explainListen(error: unknown, host: string, port: number, settings: AddressSettings): unknown {
  const { code } = error as { code?: string };
  const cause = { cause: error };
  if (code === 'EADDRINUSE')
    return new StartError(
      `Port ${port} on ${host} is in use: stop what listens there, or set ${settings.port} (0 = any free port).`,
      cause,
    );
  if (code === 'EACCES')
    return new StartError(`Port ${port} may not be used by this user: set ${settings.port} to one above 1023.`, cause);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new StartError(`${host} is not an address of this machine: correct ${settings.host}.`, cause);
  return error;
}

/**
 * The base URL of a listening address, without a trailing slash. An address for all interfaces cannot be called, so it
 * is shown as this machine.
 */
export function baseUrl(host: string, port: number): string {
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${shown}:${port}`;
}
