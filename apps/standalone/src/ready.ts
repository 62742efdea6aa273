import { readyJson, readyText } from '@tollgate/cli';
import type { ConfigSource, Health, TakeDown } from '@tollgate/runtime';
import type { Console } from './console';
import { createDemoOnce } from './demo';
import { operatorSecret, type StandaloneSettings, writeOperatorFile } from './settings';

/** What is printed when everything serves. */
export interface ReadyLines {
  readyJson: string;
  readyText: string;
}

interface Serving {
  databaseUrl: string;
  publicUrl: string;
  operatorUrl: string;
  config: ConfigSource;
  health: Health;
  console: Console | undefined;
}

/** The end of a start: called when both ports serve. */
export async function becomeReady(
  settings: StandaloneSettings,
  takeDown: TakeDown,
  { databaseUrl, publicUrl, operatorUrl, config, health, console }: Serving,
): Promise<ReadyLines> {
  const secret = operatorSecret(settings);
  // Only when nothing can fail any more, because its secrets are shown only once.
  const demo = settings.TOLLGATE_DEMO ? await createDemoOnce(databaseUrl, { url: operatorUrl, secret }) : null;
  writeOperatorFile(settings.TOLLGATE_DATA_DIR, operatorUrl, secret);
  takeDown.add('announce', () => (health.state = 'stopping'));
  health.state = 'serving';

  const served = await console?.serveAt(publicUrl);
  const addresses = {
    inferenceUrl: `${publicUrl}/v1`,
    managementUrl: `${publicUrl}/_api/v1`,
    operatorUrl,
    docsUrl: `${publicUrl}/docs`,
    operatorSecret: secret,
    console: served && {
      url: served.url,
      firstOperatorLink: await served.firstOperatorLink(demo?.tenantId ?? null),
    },
  };
  const { models } = config.current;
  const model = (models.find(({ kind }) => kind === 'chat') ?? models[0]!).id;
  return { readyJson: readyJson(addresses, demo), readyText: readyText(addresses, demo, model, 'Ctrl-C stops it.') };
}
