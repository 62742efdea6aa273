import { backendName, logger, type TollgateConfig } from '@tollgate/runtime';

/** Each is asked once a minute, and has one row per hour. */
export const MAX_ENGINES = 500;
/** Its URL in tollgate.yaml. */
const SIMULATOR = 'simulator:';

/** A metrics page, and the backends whose work it counts. */
export interface Engine {
  /**
   * The page without its query, which may hold a secret. The built-in simulator keeps its name when its port changes.
   */
  name: string;
  url: string;
  backends: string[];
}

/**
 * The pages that the configuration names. Backends that share a page share an engine. An entry without a page gets that
 * of another entry with the same URL. A backend whose entries name different pages is left out and logged, because
 * usage does not say which of them counted it.
 * @param simulatorUrl base URL (ends in /v1) for the backend url "simulator:", whose page is known
 */
export function enginesOf({ models }: TollgateConfig, simulatorUrl: string | undefined): Engine[] {
  const pages = new Map<string, Set<string>>();
  const ownPage = simulatorPage(simulatorUrl);
  for (const backend of models.flatMap(({ backends }) => backends)) {
    const page = backend.metrics ?? (backend.url === SIMULATOR ? ownPage : undefined);
    if (page === undefined) continue;
    const name = backendName(backend);
    pages.set(name, (pages.get(name) ?? new Set()).add(page));
  }
  const engines = new Map<string, Engine>();
  for (const [backend, urls] of pages) {
    const [url] = urls;
    if (urls.size > 1) {
      logger('metering').warn(
        { backend, pages: urls.size },
        'a backend has several metrics pages, so it is not compared',
      );
      continue;
    }
    const name = url === ownPage ? SIMULATOR : nameOf(url!);
    const engine = engines.get(url!) ?? { name, url: url!, backends: [] };
    engine.backends.push(backend);
    engines.set(url!, engine);
  }
  const all = [...engines.values()];
  if (all.length > MAX_ENGINES)
    logger('metering').warn({ engines: all.length }, `only the first ${MAX_ENGINES} engines are sampled`);
  return all.slice(0, MAX_ENGINES);
}

/** The engines of the current configuration, computed (and logged) once per version. */
export function enginesInForce(config: () => TollgateConfig, simulatorUrl: string | undefined): () => Engine[] {
  let of: TollgateConfig | undefined;
  let engines: Engine[] = [];
  return () => {
    if (config() !== of) engines = enginesOf((of = config()), simulatorUrl);
    return engines;
  };
}

const simulatorPage = (url: string | undefined) => url && new URL('/metrics', url).href;

function nameOf(page: string): string {
  const { origin, pathname } = new URL(page);
  return origin + pathname;
}
