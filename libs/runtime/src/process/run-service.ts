import { answerPrimary, askForSetup, isWorker } from '../workers/as-worker';
import { buildId } from '../workers/build-id';
import type { Answers } from '../workers/channel';
import { STOP_RESERVE_MS, Workers } from '../workers/workers';
import { Health } from '../health/health';
import { HealthServer } from '../health/health-server';
import type { DecidedConfig, FileConfigSource } from '../config/file-config-source';
import { logger } from '../logging/logging';
import { readConfigFile } from '../config/read-config';
import { ConfigSecretsSettings, metricsTokensOf, SERVICE_SETTINGS } from '../settings/process-settings';
import { readSettings, SettingsError, type SettingsClass, type Together } from '../settings/read-settings';
import { runProgram } from './run-program';
import type { TakeDown } from './take-down';

export interface RunningService {
  /** The parts that the service starts, by the phase of the stop that ends them. */
  takeDown: TakeDown;
  /** The dependencies of its readiness are registered here. */
  health: Health;
  /** In a worker of a service with `config`: what the first process has decided, unless that is of another build. */
  decided?: DecidedConfig | undefined;
}

export interface Service<C extends readonly SettingsClass[]> {
  name: string;
  /** A short description for --help. */
  purpose: string;
  /** In addition to the settings of every service. */
  settings: C;
  /** Checks of settings of several classes together: a line for each problem. */
  problems?(settings: Settings<C>): string[];
  /** --migrate: updates the service's own schema with the rights of its owner, and returns what was done. */
  migrate?(settings: Settings<C>): Promise<string>;
  /**
   * How many processes share the work and the ports, and how long a stop lets requests finish. Default: this process
   * alone.
   */
  workers?(settings: Settings<C>): { count: number; drainMs: number };
  /**
   * With several workers, the first process reads tollgate.yaml too, and a worker begins with what that has accepted.
   * Otherwise a worker that dies after a refused change could not start again.
   */
  config?(settings: Settings<C>): FileConfigSource;
  /** Resolves when the service serves. */
  start(settings: Settings<C>, running: RunningService): Promise<void>;
}

type Settings<C extends readonly SettingsClass[]> = Together<C> & Together<typeof SERVICE_SETTINGS>;

/**
 * Runs one of the deployables: `runProgram` with /livez, /readyz and /metrics for the whole run. With several workers,
 * this process has only these, and starts itself again for each worker.
 */
export function runService<const C extends readonly SettingsClass[]>(
  service: Service<C>,
  args: readonly string[],
): void {
  const { name, purpose } = service;
  const classes: SettingsClass[] = [...SERVICE_SETTINGS, ...service.settings];
  runProgram<Settings<C>>(
    {
      name,
      usage: usage(name, purpose, service.migrate !== undefined),
      settings(env) {
        const settings = readSettings(env, classes) as Settings<C>;
        const problems = service.problems?.(settings) ?? [];
        if (problems.length > 0) throw new SettingsError(problems.join('\n'));
        return settings;
      },
      validate: (settings) => checkSettings(settings, classes.includes(ConfigSecretsSettings)),
      ...(service.migrate ? { jobs: { '--migrate': (settings) => service.migrate!(settings) } } : {}),
      // Consumers that have started are as safe as when they are killed.
      startMayBeCut: true,
      async start(settings, takeDown) {
        const health = new Health();
        if (isWorker()) {
          const primary = answerPrimary(health);
          const decided = service.config && decidedBy((await askForSetup(primary)) as Setup);
          await service.start(settings, { takeDown, health, decided });
          takeDown.add('announce', () => (health.state = 'stopping'));
          health.state = 'serving';
          return primary.tellServing();
        }
        const server = await HealthServer.listen(
          health,
          settings.TOLLGATE_HEALTH_HOST,
          settings.TOLLGATE_HEALTH_PORT,
          metricsTokensOf(settings),
        );
        takeDown.add('basics', () => server.close());
        logger(name).info({ health: server.url }, 'starting');
        const { count, drainMs } = service.workers?.(settings) ?? { count: 1, drainMs: 0 };
        if (count === 1) await service.start(settings, { takeDown, health });
        else {
          const config = service.config?.(settings);
          takeDown.add('basics', () => config?.close());
          const workers = new Workers(name, count, health, {
            stopTimeoutMs: drainMs + STOP_RESERVE_MS,
            answers: config ? setupOf(config) : {},
          });
          takeDown.add('requests', () => workers.stop());
          await workers.start();
        }
        // Added last, so it comes before the wait for load balancers.
        takeDown.add('announce', () => (health.state = 'stopping'));
        health.state = 'serving';
        logger(name).info('ready');
      },
    },
    args,
  );
}

/** What the first process gives its workers. */
interface Setup {
  build: string;
  decided: DecidedConfig;
}

function setupOf(config: FileConfigSource): Answers {
  const build = buildId();
  return { setup: () => Promise.resolve({ build, decided: config.decided } satisfies Setup) };
}

/** Another build may read other things from the file, so it reads the file itself. */
const decidedBy = ({ build, decided }: Setup): DecidedConfig | undefined => (build === buildId() ? decided : undefined);

/** Checks tollgate.yaml too if the service reads it, and its secrets if the service uses them. */
function checkSettings(settings: object, withSecrets: boolean): string {
  const { TOLLGATE_CONFIG: file } = settings as { TOLLGATE_CONFIG?: string };
  if (file === undefined) return 'The settings are valid.';
  readConfigFile(file, withSecrets ? process.env : null);
  return `The settings and ${file} are valid.`;
}

const usage = (name: string, purpose: string, migrates: boolean): string =>
  [
    `Usage: node apps/${name}/dist/main.js [--validate${migrates ? ' | --migrate' : ''}]`,
    purpose,
    '  --validate  check the settings, and exit',
    ...(migrates ? ['  --migrate   bring the schema of this service up to date, and exit'] : []),
    'Settings are environment variables: docs/operating/settings.md.',
  ].join('\n');
