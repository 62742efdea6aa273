// The swc configuration of the build and of Jest.
export const swcOptions = {
  swcrc: false,
  configFile: false,
  module: {
    type: 'commonjs',
    ignoreDynamic: true,
    lazy: [
      'testcontainers',
      'kafkajs',
      'ioredis',
      // A gateway of the distributed form has no database.
      'typeorm',
      // Only for the console, which is off by default.
      'better-auth',
      'better-auth/api',
      'better-auth/crypto',
      'better-auth/plugins',
      '@better-auth/passkey',
      'nodemailer',
    ],
  },
  jsc: {
    target: 'es2023',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    keepClassNames: true,
  },
};
