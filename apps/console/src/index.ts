export { MIGRATIONS } from './database';
export { CONSOLE_PREFIX, createConsoleApp, type ConsoleApp } from './console-app';
export { optionsOf } from './options';
export { ConsoleSecret, ConsoleSettings } from './settings';
