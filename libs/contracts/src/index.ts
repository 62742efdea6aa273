export * from './ids';
export * from './money';
export * from './credentials';
export * from './events';
export * from './topics';
export * from './subjects';
export * from './request-error';
export * from './reconcile';
