export * from './messages';
export * from './postgres/postgres-messages';
export * from './outbox/outbox';
export * from './outbox/outbox-relay';
