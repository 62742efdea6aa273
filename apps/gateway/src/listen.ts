import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type AddressSettings, baseUrl, explainListen, StartError } from '@tollgate/runtime';
import { createServer, type AddressInfo } from 'node:net';
import type { PublicSettings } from './settings';

/** An app and the address that it listens on. */
export interface AppAddress {
  /** Null: workers serve it. This process only tries its port. */
  app: NestFastifyApplication | null;
  host: string;
  port: number;
  /** The settings that a failure names. */
  settings: AddressSettings;
}

export const publicAddress = (
  app: NestFastifyApplication | null,
  { TOLLGATE_HOST: host, TOLLGATE_PORT: port }: Pick<PublicSettings, 'TOLLGATE_HOST' | 'TOLLGATE_PORT'>,
): AppAddress => ({ app, host, port, settings: { host: 'TOLLGATE_HOST', port: 'TOLLGATE_PORT' } });

/**
 * Listens on all addresses, the last one first, so that the first one serves nothing while another may fail. Returns
 * their base URLs. Without an app, the URL has the port of the setting. Rejects with StartError, which has a line for
 * each address that cannot be listened on, in this order.
 */
export async function listen<const A extends readonly AppAddress[]>(
  addresses: A,
): Promise<{ [at in keyof A]: string }> {
  const urls: string[] = [];
  const problems: StartError[] = [];
  for (const { app, host, port, settings } of addresses.toReversed()) {
    try {
      await (app && problems.length === 0 ? app.listen(port, host) : tryPort(port, host));
    } catch (error) {
      const problem = explainListen(error, host, port, settings);
      if (!(problem instanceof StartError)) throw problem;
      problems.unshift(problem);
      continue;
    }
    const bound = app && problems.length === 0 ? (app.getHttpServer().address() as AddressInfo).port : port;
    urls.unshift(baseUrl(host, bound));
  }
  if (problems.length > 0) throw new StartError(problems.map(({ message }) => message).join('\n'), { cause: problems });
  return urls as { [at in keyof A]: string };
}

/** Whether the port is free. Rejects as `listen` does. */
async function tryPort(port: number, host: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  await new Promise((resolve) => server.close(resolve));
}
