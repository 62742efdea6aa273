import * as modules from 'node:module';

// An early import of every program. With `--enable-source-maps`, Node reads the maps of all libraries too, which takes a
// sixth of the time that a program takes to load. Stack traces need only ours.
if (process.sourceMapsEnabled && 'setSourceMapsSupport' in modules)
  modules.setSourceMapsSupport(true, { nodeModules: false });
