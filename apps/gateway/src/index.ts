export { GatewayModule, type GatewayOptions } from './gateway.module';
export { createPublicApp, cutOff, drain, flushUsage } from './public-app';
export { createOperatorApp, type OperatorOptions } from './operator/operator.app';
