import '@tollgate/runtime/require-node';
import '@tollgate/runtime/catch-signals';
import '@tollgate/runtime/own-source-maps';
import { AdmissionStore, askForCredit, RedisAdmissionStore } from '@tollgate/admission';
import { CredentialStore, RedisCredentialStore } from '@tollgate/credentials';
import { kafkaMessages } from '@tollgate/messaging';
import { MessagesModule } from '@tollgate/messaging/nest';
import {
  type ConfigFileSettings,
  ConfigSource,
  type DecidedConfig,
  delay,
  FileConfigSource,
  globalModule,
  logger,
  metricsTokensOf,
  openTracer,
  portConflicts,
  provide,
  runService,
} from '@tollgate/runtime';
import { GatewayModule } from './gateway.module';
import { listen, publicAddress } from './listen';
import { createOperatorApp } from './operator/operator.app';
import { createPublicApp } from './public/public-app';
import { stopOf } from './public/public-stop';
import { acceptedSecrets, idempotencyOptions, SETTINGS } from './settings';

const configOf = ({ TOLLGATE_CONFIG: file }: ConfigFileSettings, decided?: DecidedConfig) =>
  new FileConfigSource(file, process.env, undefined, decided);

runService(
  {
    name: 'gateway',
    purpose: 'Serves the inference, management and operator APIs.',
    settings: SETTINGS,
    problems: (settings) =>
      portConflicts([
        { setting: 'TOLLGATE_PORT', host: settings.TOLLGATE_HOST, port: settings.TOLLGATE_PORT },
        {
          setting: 'TOLLGATE_OPERATOR_PORT',
          host: settings.TOLLGATE_OPERATOR_HOST,
          port: settings.TOLLGATE_OPERATOR_PORT,
        },
        { setting: 'TOLLGATE_HEALTH_PORT', host: settings.TOLLGATE_HEALTH_HOST, port: settings.TOLLGATE_HEALTH_PORT },
      ]),
    workers: ({ TOLLGATE_WORKERS: count, ...settings }) => ({
      count,
      drainMs: (settings.TOLLGATE_LAME_DUCK_SECONDS + settings.TOLLGATE_DRAIN_SECONDS) * 1_000,
    }),
    config: (settings) => configOf(settings),
    async start(settings, { takeDown, health, decided }) {
      const tracer = await openTracer(settings, 'gateway');
      takeDown.add('basics', () => tracer?.close());
      const config = configOf(settings, decided);
      takeDown.add('basics', () => config.close());
      const url = settings.REDIS_URL;
      const idempotency = idempotencyOptions(settings, settings.TOLLGATE_IDEMPOTENCY_SECRETS);
      const messages = kafkaMessages(settings, 'gateway', { startsWithoutBrokers: true });
      const admission = new RedisAdmissionStore({
        url,
        settledReplicas: settings.REDIS_SETTLED_REPLICAS,
        claims: idempotency.claims,
        onUnknownTenant: askForCredit(messages),
      });
      const credentials = new RedisCredentialStore({ url });
      takeDown.add(
        'connections',
        () => admission.close(),
        () => credentials.close(),
        () => messages.close(),
      );
      // Both have their own connections, and every request needs both.
      health.depend('redis', { required: true, check: () => Promise.all([admission.check(), credentials.check()]) });
      // Inference starts and runs without Kafka: settled holds record the usage.
      health.depend('kafka', { required: false, check: () => messages.check() });
      await Promise.all([admission.start(), credentials.start()]);

      const seams = globalModule([
        provide(AdmissionStore, admission),
        provide(CredentialStore, credentials),
        provide(ConfigSource, config),
      ]);
      const simulatorUrl = settings.TOLLGATE_SIMULATOR_URL;
      const trustedProxies = settings.TOLLGATE_TRUSTED_PROXIES;
      const gateway = GatewayModule.register({
        maxBodyMib: settings.TOLLGATE_MAX_BODY_MIB,
        tracer,
        bodyMemoryMib: settings.TOLLGATE_BODY_MEMORY_MIB,
        trustedProxies,
        ...idempotency.gateway,
        ...(simulatorUrl !== undefined && { simulatorUrl }),
      });
      const app = await createPublicApp(
        { module: class Gateway {}, imports: [MessagesModule.of(messages), seams, gateway] },
        { maxConnections: settings.TOLLGATE_MAX_CONNECTIONS, trustedProxies },
      );
      const stop = stopOf(app);
      takeDown.add('applications', () => app.close());
      takeDown.add('usage', () => stop.flushUsage());
      const secrets = acceptedSecrets(settings.TOLLGATE_OPERATOR_SECRET, settings);
      const hosts = [settings.TOLLGATE_OPERATOR_HOST, ...(settings.TOLLGATE_OPERATOR_ALLOWED_HOSTS?.split(',') ?? [])];
      const metricsTokens = metricsTokensOf(settings);
      const operatorApp = await createOperatorApp(
        { messages, config, admission },
        { secrets, health, hosts, metricsTokens, trustedProxies },
      );
      takeDown.add(
        'requests',
        // Probes and metrics are served until the requests have ended.
        () => operatorApp.close(),
        () => stop.endRequests(settings.TOLLGATE_DRAIN_SECONDS * 1_000),
      );
      const [publicUrl, operatorUrl] = await listen([
        publicAddress(app, settings),
        {
          app: operatorApp,
          host: settings.TOLLGATE_OPERATOR_HOST,
          port: settings.TOLLGATE_OPERATOR_PORT,
          settings: { host: 'TOLLGATE_OPERATOR_HOST', port: 'TOLLGATE_OPERATOR_PORT' },
        },
      ]);
      // Reports "not ready" but still serves, so that load balancers notice before any request is refused. Added last:
      // a start that fails at a port does not wait for it.
      takeDown.add('announce', () => {
        stop.leave();
        return delay(settings.TOLLGATE_LAME_DUCK_SECONDS * 1_000);
      });
      logger('gateway').info({ publicUrl, operatorUrl }, 'listening');
    },
  },
  process.argv.slice(2),
);
