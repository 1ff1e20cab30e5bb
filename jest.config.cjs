const { availableParallelism } = require('node:os');

/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/marbles/**/*.test.ts'],
  // What is worth running before a release: jest.long.config.cjs.
  testPathIgnorePatterns: ['/node_modules/', '\\.long\\.test\\.ts$'],
  testEnvironment: 'node',
  // From its source, so that no build is needed.
  moduleNameMapper: { '^#versioning$': '<rootDir>/packages/versioning/src/index.ts' },
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
