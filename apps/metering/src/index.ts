export { MIGRATIONS } from './database';
export { MeteringModule } from './metering.module';
export { MeteringSettings } from './settings';
