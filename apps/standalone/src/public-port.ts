import type { DynamicModule } from '@nestjs/common';
import { CONSOLE_PREFIX } from '@tollgate/console';
import { createPublicApp, GatewayModule, idempotencyOptions, publicAddress, stopOf } from '@tollgate/gateway';
import type { Messages } from '@tollgate/messaging';
import { MessagesModule } from '@tollgate/messaging/nest';
import type { globalModule, TakeDown } from '@tollgate/runtime';
import { openConsole } from './console';
import { idempotencySecrets, type StandaloneSettings } from './settings';
import type { Basics } from './stores';

export interface PublicPortParts extends Basics {
  messages: Messages;
  /** The module of the stores. */
  seams: ReturnType<typeof globalModule>;
  databaseUrl: string;
  simulatorUrl: string;
  /** Further services of this process. */
  services?: readonly DynamicModule[];
  /** At the stop, when the usage of all requests is published, and before this process stops to consume. */
  onUsageFlushed?: () => Promise<unknown>;
}

/** The gateway, and the console below its prefix. The port does not listen yet. */
export async function openPublicPort(
  settings: StandaloneSettings,
  takeDown: TakeDown,
  { messages, seams, databaseUrl, simulatorUrl, tracer, config, services = [], onUsageFlushed }: PublicPortParts,
) {
  const trustedProxies = settings.TOLLGATE_TRUSTED_PROXIES;
  const gateway = GatewayModule.register({
    tracer,
    simulatorUrl,
    maxBodyMib: settings.TOLLGATE_MAX_BODY_MIB,
    bodyMemoryMib: settings.TOLLGATE_BODY_MEMORY_MIB,
    trustedProxies,
    ...idempotencyOptions(settings, idempotencySecrets(settings)).gateway,
  });
  const console = await openConsole(settings, { messages, config, databaseUrl });
  if (console) takeDown.add('applications', () => console.app.close());
  const app = await createPublicApp(
    { module: class Standalone {}, imports: [MessagesModule.of(messages), seams, ...services, gateway] },
    {
      maxConnections: settings.TOLLGATE_MAX_CONNECTIONS,
      trustedProxies,
      mounted: console && { prefix: CONSOLE_PREFIX, handle: console.app.handle },
    },
  );
  const stop = stopOf(app);
  takeDown.add('applications', () => app.close());
  takeDown.add(
    'usage',
    () => onUsageFlushed?.(),
    () => stop.flushUsage(),
  );
  takeDown.add('requests', () => stop.endRequests(settings.TOLLGATE_DRAIN_SECONDS * 1_000));
  if (console) takeDown.add('requests', () => console.app.endStreams());
  return { address: publicAddress(app, settings), console };
}
