export { MIGRATIONS } from './database';
export { MeteringModule } from './metering.module';
export type { MeteringOptions } from './options';
