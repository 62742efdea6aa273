import { openClient, readRedisUrl, type NatMap, type RedisClient } from '@tollgate/redis';
import { logger } from '@tollgate/runtime';

const SUBSCRIBE_AGAIN_MS = 1_000;

/** Is notified when something was put. Nothing depends on it: the next check finds what was missed. */
export class Notifications {
  private readonly client: RedisClient;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;
  private failing = false;

  constructor(
    { url, natMap }: { url: string; natMap?: NatMap },
    private readonly channel: string,
    onChange: () => void,
  ) {
    this.client = openClient(readRedisUrl(url), 'tollgate-credentials-notifications', natMap);
    // The client connects again on its own. The check finds what was missed meanwhile.
    this.client.on('error', () => {});
    this.client.on('ready', () => void this.subscribe());
    this.client.on('message', onChange);
  }

  start(): void {
    this.client.connect().catch(() => {});
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.client.disconnect();
    if ('stream' in this.client) this.client.stream?.destroy();
  }

  private async subscribe(): Promise<void> {
    try {
      await this.client.subscribe(this.channel);
      this.failing = false;
    } catch (error) {
      if (this.closed) return;
      if (!this.failing)
        logger('credentials').warn(
          { reason: (error as Error).message },
          'no notifications of changed credentials; they are found by checks, up to 300 ms later',
        );
      this.failing = true;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        if (this.client.status === 'ready') void this.subscribe();
      }, SUBSCRIBE_AGAIN_MS).unref();
    }
  }
}
