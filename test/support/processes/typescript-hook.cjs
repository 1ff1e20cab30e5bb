// Lets plain Node load the project's TypeScript, in threads and processes that jest does not reach.
const { readFileSync } = require('node:fs');
const { transformSync } = require('@swc/core');

require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    filename,
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
    module: { type: 'commonjs' },
    sourceMaps: 'inline',
  });
  // oxlint-disable-next-line no-underscore-dangle -- the name that Node gave it
  module._compile(code, filename);
};
