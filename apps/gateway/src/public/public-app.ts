import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Messages } from '@tollgate/messaging';
import { MessagesServer } from '@tollgate/messaging/nest';
import { publicAdapter, type PublicAppOptions } from './public-adapter';
import { PublicHooks } from './public-hooks';

/**
 * The public port: the inference routes and the docs on the bare server, the management API as Nest controllers. It is
 * initialised but does not listen yet. The module's message patterns are already answered.
 * @param module the program's root module; it imports a GatewayModule
 */
export async function createPublicApp(
  module: Type | DynamicModule,
  options: PublicAppOptions = {},
): Promise<NestFastifyApplication> {
  // Only requests call this, and then `hooks` is assigned.
  const adapter = publicAdapter(options, () => hooks);
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: false,
  });
  const hooks = app.get(PublicHooks, { strict: false });
  const server = adapter.getInstance();
  hooks.addTo(server);
  app.connectMicroservice({ strategy: new MessagesServer(app.get(Messages, { strict: false })) });
  await app.init();
  await app.startAllMicroservices();
  await server.ready();
  return app;
}
