export { MIGRATIONS } from './database';
export { MeteringModule, type MeteringOptions } from './metering.module';
