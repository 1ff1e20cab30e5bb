const fast = require('./jest.config.cjs');

/** @type {import('jest').Config} */
module.exports = {
  ...fast,
  testMatch: ['<rootDir>/test/**/*.long.test.ts', '<rootDir>/marbles/**/*.long.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
};
