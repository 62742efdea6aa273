export { createDemo, type Demo } from './demo';
export { OperatorClient, type Operator } from './operator-client';
export { firstOperatorLink } from './user-commands';
export { readyJson, readyText, type Addresses } from './ready-lines';
