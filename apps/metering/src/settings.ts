import { Optional, Text } from '@tollgate/runtime';

export class SimulatorSettings {
  /** What the backend url "simulator:" of tollgate.yaml stands for: its metrics page is beside it. */
  @Optional() @Text(/^https?:\/\/\S+\/v1$/, 'a URL that ends in /v1') TOLLGATE_SIMULATOR_URL?: string;
}
