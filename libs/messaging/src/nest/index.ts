export * from './messages-server';
export * from './messages.module';
export * from './outbox';
export { EventPattern, MessagePattern } from './patterns';
export * from './service-client';
