export * from './target';
export * from './function-library';
export * from './redis-link';
