import * as modules from 'node:module';

// An early import of every program. With `--enable-source-maps`, Node reads the maps of all libraries too. That takes a
// sixth of a program's loading time. Stack traces need only ours.
if (process.sourceMapsEnabled && 'setSourceMapsSupport' in modules)
  modules.setSourceMapsSupport(true, { nodeModules: false });
