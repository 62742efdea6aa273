export { BalanceUpdatesModule } from './admit/balance-updates.module';
export { GatewayModule } from './gateway.module';
export type { GatewayOptions } from './options';
export { createPublicApp } from './public/public-app';
export { stopOf } from './public/public-stop';
export { createOperatorApp } from './operator/operator.app';
export { listen, publicAddress } from './listen';
export {
  acceptedSecrets,
  FormerSecretSettings,
  idempotencyOptions,
  IdempotencySecretsSettings,
  IdempotencySettings,
  OPERATOR_SECRET_MIN_BITS,
  OperatorHostsSettings,
  OperatorPort,
  OperatorSecret,
  PublicSettings,
  WorkersCount,
} from './settings';
