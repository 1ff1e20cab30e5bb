/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/marbles/**/*.test.ts'],
  testEnvironment: 'node',
  // Only ends tests that hang: on a busy machine, servers start and files are written slowly.
  testTimeout: 120_000,
  // One worker per core: the default of one less halves the speed on two cores.
  maxWorkers: '100%',
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
