export { GatewayModule, type GatewayOptions } from './gateway.module';
export { createPublicApp, drain } from './public-app';
export { createOperatorApp, type OperatorOptions } from './operator/operator.app';
