const { availableParallelism } = require('node:os');

/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/marbles/**/*.test.ts'],
  testEnvironment: 'node',
  // Only ends tests that hang: on a busy machine, servers start and files are written slowly.
  testTimeout: 120_000,
  // More than one per core, because tests wait for the servers that they start.
  maxWorkers: Math.ceil(1.5 * availableParallelism()),
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
