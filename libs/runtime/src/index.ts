export * from './logging';
export * from './metrics';
export * from './tollgate-config';
