/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/marbles/**/*.test.ts'],
  testEnvironment: 'node',
  // Servers start and files are written: slow on a busy machine, and no measure of anything.
  testTimeout: 30_000,
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
