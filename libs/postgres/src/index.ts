export * from './database';
export * from './migrate';
export * from './embedded/embedded-postgres';
