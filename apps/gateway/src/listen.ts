import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { baseUrl, explainListen, type AddressSettings } from '@tollgate/runtime';
import type { AddressInfo } from 'node:net';

/**
 * Begins to serve; the base URL. Rejects with StartError when the port cannot be had. `settings` names where the
 * address comes from.
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
