export * from './target';
export * from './redis-settings';
export * from './function-library';
export type * from './call';
export * from './redis-link';
export * from './slot';
export * from './rights';
export * from './library-keeper';
