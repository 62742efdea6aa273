import { type ConsoleApp, createConsoleApp, optionsOf } from '@tollgate/console';
import type { Messages } from '@tollgate/messaging';
import type { ConfigSource } from '@tollgate/runtime';
import { consoleSecret, type StandaloneSettings } from './settings';

export interface Console {
  app: ConsoleApp;
  /** Called when the public port listens at `publicUrl`. */
  serveAt(
    publicUrl: string,
  ): Promise<{ url: string; firstOperatorLink(tenantId: string | null): Promise<string | null> }>;
}

/** The console of this process; undefined where it is turned off. */
export async function openConsole(
  settings: StandaloneSettings,
  services: { messages: Messages; config: ConfigSource; databaseUrl: string },
): Promise<Console | undefined> {
  if (!settings.TOLLGATE_CONSOLE) return undefined;
  const { databaseUrl } = services;
  const app = await createConsoleApp(services, {
    databaseUrl,
    secret: consoleSecret(settings),
    trustedProxies: settings.TOLLGATE_TRUSTED_PROXIES,
    ...optionsOf(settings),
  });
  return {
    app,
    async serveAt(publicUrl) {
      const origin = settings.TOLLGATE_CONSOLE_URL ?? browserOrigin(publicUrl);
      await app.serveAt(origin, publicUrl, publicUrl);
      return {
        url: `${origin}/console`,
        firstOperatorLink: (tenantId) => app.firstOperatorLink(tenantId),
      };
    },
  };
}

/** A passkey belongs to a name, never to an address. So browsers of this machine use the name localhost. */
function browserOrigin(publicUrl: string): string {
  const url = new URL(publicUrl);
  url.hostname = 'localhost';
  return url.origin;
}
