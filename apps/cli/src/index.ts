export { createDemo, type Demo } from './first-start/demo';
export { OperatorClient, type Operator } from './command/operator-client';
export { firstOperatorLink } from './tenants/user-commands';
export { readyJson, readyText, type Addresses } from './first-start/ready-lines';
