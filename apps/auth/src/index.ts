export { AuthModule } from './auth.module';
export { MIGRATIONS } from './database';
