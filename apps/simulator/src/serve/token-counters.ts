/** Names that requests make up are bounded; tokens of those beyond are counted under none. */
const MAX_MODELS = 10_000;
const COUNTERS = [
  ['simulator_prompt_tokens_total', 'Prompt tokens processed', 'prompt'],
  ['simulator_generation_tokens_total', 'Tokens generated, whoever still wanted them', 'generation'],
] as const;

interface Tokens {
  prompt: number;
  generation: number;
}

/**
 * What an engine says of itself: tokens that it has worked on since its start, by model, cancelled work too. A reset of
 * the simulator leaves them, as its faults leave them: they are the truth.
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

  /** In Prometheus's text form. */
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
