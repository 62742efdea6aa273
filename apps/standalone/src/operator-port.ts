import type { AdmissionStore } from '@tollgate/admission';
import { acceptedSecrets, createOperatorApp } from '@tollgate/gateway';
import type { Messages } from '@tollgate/messaging';
import { metricsTokensOf, type ConfigSource, type Health, type TakeDown } from '@tollgate/runtime';
import { OPERATOR_HOST, operatorSecret, type StandaloneSettings } from './settings';

/** The operator API, the probes and /metrics. The port does not listen yet. */
export async function openOperatorPort(
  settings: StandaloneSettings,
  takeDown: TakeDown,
  { health, ...services }: { messages: Messages; config: ConfigSource; admission: AdmissionStore; health: Health },
) {
  const app = await createOperatorApp(services, {
    secrets: acceptedSecrets(operatorSecret(settings), settings),
    health,
    hosts: settings.TOLLGATE_OPERATOR_ALLOWED_HOSTS?.split(',') ?? [],
    metricsTokens: metricsTokensOf(settings),
    trustedProxies: settings.TOLLGATE_TRUSTED_PROXIES,
  });
  takeDown.add('requests', () => app.close());
  return {
    app,
    host: OPERATOR_HOST,
    port: settings.TOLLGATE_OPERATOR_PORT,
    settings: { host: 'TOLLGATE_OPERATOR_PORT', port: 'TOLLGATE_OPERATOR_PORT' },
  };
}
