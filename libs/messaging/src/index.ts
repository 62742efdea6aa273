export * from './messages';
export * from './postgres/postgres-messages';
export * from './outbox/outbox';
export * from './outbox/outbox-relay';
export * from './kafka/kafka-messages';
export * from './kafka/kafka-settings';
export * from './kafka/apply-topics';
export * from './kafka/dead-letters';
export type { KafkaConnection } from './kafka/connection';
