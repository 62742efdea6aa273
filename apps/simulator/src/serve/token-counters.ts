/** Requests can invent model names. Tokens of names beyond this number are counted under an empty name. */
const MAX_MODELS = 10_000;
const COUNTERS = [
  ['simulator_prompt_tokens_total', 'Prompt tokens processed', 'prompt'],
  ['simulator_generation_tokens_total', 'Tokens generated, including those of cancelled requests', 'generation'],
] as const;

interface Tokens {
  prompt: number;
  generation: number;
}

/**
 * An engine's own counters: the tokens processed since its start by model, including those of cancelled requests. They
 * are always true: neither a fault nor a reset of the simulator changes them.
 */
export class TokenCounters {
  private readonly models = new Map<string, Tokens>();
  private readonly startedSeconds = Date.now() / 1_000;

  of(model: string): Tokens {
    const name = this.models.has(model) || this.models.size < MAX_MODELS ? model : '';
    let tokens = this.models.get(name);
    if (!tokens) this.models.set(name, (tokens = { prompt: 0, generation: 0 }));
    return tokens;
  }

  /** The metrics page in the Prometheus text format. */
  page(): string {
    const lines = COUNTERS.flatMap(([name, help, kind]) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} counter`,
      ...[...this.models].map(([model, tokens]) => `${name}{model_name="${escape(model)}"} ${tokens[kind]}`),
    ]);
    lines.push('# TYPE process_start_time_seconds gauge', `process_start_time_seconds ${this.startedSeconds}`);
    return `${lines.join('\n')}\n`;
  }
}

const escape = (label: string): string => label.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
