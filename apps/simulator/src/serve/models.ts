import { planFaults, type FaultPlan } from '../config/fault-rules';
import { readModelSettings, type ModelSettings, type Settings } from '../config/settings';
import { asciiJson } from '../generate/ascii-json';
import { RequestError } from '../wire/request-error';

/** Models made up on the fly and distinct `simulator` fields that are remembered; beyond that the oldest start anew. */
const MAX_REMEMBERED = 10_000;
/** Listed when none is configured; they behave by the defaults. */
const MODELS_OF_DEFAULT = ['sim-small', 'sim-large', 'sim-embed'];
const CREATED = 1_735_689_600;

interface Model {
  settings: ModelSettings;
  /** Requests so far: what `first` and `every` of its faults count by. */
  requests: number;
}

/** Which model a request means and how it behaves. Counts the requests of each. */
export class Models {
  readonly #models = new Map<string, Model>();

  constructor(private readonly settings: Settings) {}

  /**
   * Takes in one request: its model's settings, under those of its own `simulator` field, and what goes wrong with it.
   * Requests with the same model and the same `simulator` field (a `tag` sets them apart) count as one series. Throws
   * `RequestError` 404 when strict, `ConfigError` for a wrong field.
   */
  take(name: string, own: unknown): { settings: ModelSettings; faults: FaultPlan } {
    const model = this.#remembered(own === undefined ? name : `${name}\n${JSON.stringify(own)}`, () => {
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
