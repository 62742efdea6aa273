export * from './credential-store';
