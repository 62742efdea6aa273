export { createDemo, type Demo } from './demo';
export { OperatorClient, type Operator } from './operator-client';
export { readyJson, readyText, type Addresses } from './ready-lines';
