export { MIGRATIONS } from './database';
export { CONSOLE_PREFIX, createConsoleApp, type ConsoleApp } from './console-app';
export { optionsOf, type ConsoleOptions } from './options';
export { ConsoleSecret, ConsoleSettings } from './settings';
