export * from './target';
export * from './redis-settings';
export * from './function-library';
export * from './redis-link';
export * from './slot';
export * from './rights';
export * from './library-keeper';
