import { AdmissionStore, PostgresAdmissionStore } from '@tollgate/admission';
import { CredentialStore, PostgresCredentialStore } from '@tollgate/credentials';
import { idempotencyOptions } from '@tollgate/gateway';
import {
  ConfigSource,
  type DecidedConfig,
  FileConfigSource,
  globalModule,
  openTracer,
  provide,
  type TakeDown,
  type Tracer,
} from '@tollgate/runtime';
import { idempotencySecrets, operatorSecret, type StandaloneSettings } from './settings';

/** What each process has from its beginning. */
export interface Basics {
  tracer: Tracer | null;
  config: FileConfigSource;
}

/**
 * Rejects with ConfigError or SettingsError, before anything else has started. `decided`: the configuration of the
 * process that has started this one.
 */
export async function openBasics(
  settings: StandaloneSettings,
  takeDown: TakeDown,
  decided?: DecidedConfig,
): Promise<Basics> {
  operatorSecret(settings);
  idempotencySecrets(settings);
  const tracer = await openTracer(settings, 'standalone');
  takeDown.add('basics', () => tracer?.close());
  const config = new FileConfigSource(settings.TOLLGATE_CONFIG, process.env, undefined, decided);
  takeDown.add('basics', () => config.close());
  return { tracer, config };
}

/** The stores in the database, and the module that provides them with the configuration. */
export async function openStores(
  settings: StandaloneSettings,
  takeDown: TakeDown,
  { url, config }: { url: string; config: ConfigSource },
) {
  const { claims } = idempotencyOptions(settings, idempotencySecrets(settings));
  const admission = new PostgresAdmissionStore({ url, claims });
  const credentials = new PostgresCredentialStore({ url, applicationName: 'tollgate-credentials' });
  takeDown.add(
    'connections',
    () => admission.close(),
    () => credentials.close(),
  );
  await Promise.all([admission.start(), credentials.start()]);
  const seams = globalModule([
    provide(AdmissionStore, admission),
    provide(CredentialStore, credentials),
    provide(ConfigSource, config),
  ]);
  return { admission, seams };
}
