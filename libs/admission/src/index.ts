export * from './admission-store';
