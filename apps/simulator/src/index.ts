export { startSimulator, type Simulator, type SimulatorOptions } from './serve/start';
export type { SimulatorConfig } from './config/settings';
export type { SimulatorStats } from './serve/stats';
