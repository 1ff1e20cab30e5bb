const { availableParallelism } = require('node:os');

/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/marbles/**/*.test.ts'],
  // What is worth running before a release: jest.long.config.cjs.
  testPathIgnorePatterns: ['/node_modules/', '\\.long\\.test\\.ts$'],
  testEnvironment: 'node',
  testSequencer: '<rootDir>/test/support/sequencer.cjs',
  moduleNameMapper: {
    // From its source, so that no build is needed.
    '^#versioning$': '<rootDir>/packages/versioning/src/index.ts',
    // Its bundle: each test file loads all of RxJS, in 12 ms as one module and in 120 ms as 200.
    '^rxjs$': '<rootDir>/node_modules/rxjs/dist/bundles/rxjs.umd.js',
    '^rxjs/testing$': '<rootDir>/test/support/rxjs-testing.cjs',
  },
  // Only ends tests that hang: on a busy machine, servers start and files are written slowly.
  testTimeout: 120_000,
  // Tests wait for processes and timers as often as they compute: three workers use two cores well.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
};
