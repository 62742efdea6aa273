import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { baseUrl, explainListen, type AddressSettings } from '@tollgate/runtime';
import type { AddressInfo } from 'node:net';

/**
 * Starts to listen. Resolves with the base URL. Rejects with StartError when the port is not available. `settings`
 * names the settings of the address, for that error.
 */
export async function listen(
  app: NestFastifyApplication,
  host: string,
  port: number,
  settings: AddressSettings,
): Promise<string> {
  try {
    await app.listen(port, host);
  } catch (error) {
    throw explainListen(error, host, port, settings);
  }
  return baseUrl(host, (app.getHttpServer().address() as AddressInfo).port);
}
