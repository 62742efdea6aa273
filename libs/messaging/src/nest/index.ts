export * from './messages-server';
export * from './messages.module';
export * from './outbox';
export * from './outbox.module';
export { EventPattern, MessagePattern } from './patterns';
export * from './service-client';
