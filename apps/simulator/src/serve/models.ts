import { createHash } from 'node:crypto';
import { planFaults, type FaultPlan } from '../config/fault-rules';
import { readModelSettings, type ModelSettings, type Settings } from '../config/settings';
import { asciiJson } from '../generate/ascii-json';
import { RequestError } from '../wire/request-error';

/** How many models and distinct `simulator` fields are remembered. Beyond that the oldest are forgotten. */
const MAX_REMEMBERED = 10_000;
/** Listed if no model is configured. They have the default settings. */
const MODELS_OF_DEFAULT = ['sim-small', 'sim-large', 'sim-embed'];
const CREATED = 1_735_689_600;

interface Model {
  settings: ModelSettings;
  /** Requests so far. `first` and `every` of the faults refer to this count. */
  requests: number;
}

/** Finds the model of a request and its settings. Counts the requests of each model. */
export class Models {
  readonly #models = new Map<string, Model>();

  constructor(private readonly settings: Settings) {}

  /**
   * Counts one request and returns its settings and faults. The fields of its own `simulator` object override the
   * fields of the model. Requests with the same model and the same `simulator` object are one series; a `tag` separates
   * them. Throws `RequestError` 404 for an unknown model if strict, `ConfigError` for a wrong field.
   */
  take(name: string, own: unknown): { settings: ModelSettings; faults: FaultPlan } {
    const model = this.#remembered(keyOf(name, own), () => {
      const base = this.settings.models.get(name);
      if (!base && this.settings.strict)
        throw new RequestError(404, `the model ${name} does not exist`, 'model', 'model_not_found');
      return own === undefined
        ? (base ?? this.settings.defaults)
        : readModelSettings(own, 'simulator', base ?? this.settings.defaults);
    });
    return { settings: model.settings, faults: planFaults(model.settings.faults, ++model.requests) };
  }

  list(): string {
    const names = this.settings.models.size > 0 ? [...this.settings.models.keys()] : MODELS_OF_DEFAULT;
    return asciiJson({
      object: 'list',
      data: names.map((id) => ({ id, object: 'model', created: CREATED, owned_by: 'simulator' })),
    });
  }

  reset(): void {
    this.#models.clear();
  }

  #remembered(key: string, make: () => ModelSettings): Model {
    let model = this.#models.get(key);
    if (!model) {
      model = { settings: make(), requests: 0 };
      if (this.#models.size >= MAX_REMEMBERED) this.#models.delete(this.#models.keys().next().value!);
      this.#models.set(key, model);
    }
    return model;
  }
}

/** A client chooses what its `simulator` object has, so that is kept as a hash. */
function keyOf(name: string, own: unknown): string {
  return own === undefined ? name : `${name}\n${createHash('sha256').update(JSON.stringify(own)).digest('base64')}`;
}
