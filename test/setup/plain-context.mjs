import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

/**
 * Jest's Node environment with a plain global object. Jest puts a Proxy behind the global object of a test file, so
 * each `Math` or `Buffer` in a loop costs a call of it. In a plain context, it costs what it costs in a program.
 */
export default class PlainContext extends TestEnvironment {
  constructor(...args) {
    const { createContext } = vm;
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...args);
    } finally {
      vm.createContext = createContext;
    }
  }
}
