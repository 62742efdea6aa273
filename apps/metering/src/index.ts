export { MIGRATIONS } from './database';
