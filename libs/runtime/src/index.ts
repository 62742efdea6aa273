export * from './logging';
export * from './metrics';
export * from './tollgate-config';
export * from './read-config';
export * from './file-config-source';
