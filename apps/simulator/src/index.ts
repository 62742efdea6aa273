export { startSimulator, type Simulator, type SimulatorOptions } from './serve/start';
export type { SimulatorConfig, ModelSettings } from './config/settings';
export type { FaultRule, FaultStatus, When } from './config/fault-rules';
export type { SimulatorStats } from './serve/stats';
export type { RecordedRequest } from './serve/handler';
export { ConfigError } from './config/read';
