// Lets plain Node load the project's TypeScript, in threads and processes that jest does not reach. What is compiled is
// kept, by its text: to compile the rules takes longer than most of the tests in which a thread reads them.
const { createHash } = require('node:crypto');
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { threadId } = require('node:worker_threads');

const VERSION = require('@swc/core/package.json').version;
const OPTIONS = {
  jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
  module: { type: 'commonjs' },
  sourceMaps: 'inline',
};
const KEPT = path.join(__dirname, '../../../node_modules/.cache/typescript-hook');

function compile(filename) {
  const text = readFileSync(filename, 'utf8');
  const name = createHash('sha256')
    .update(JSON.stringify([filename, text, VERSION, OPTIONS]))
    .digest('hex');
  const file = path.join(KEPT, name);
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It is compiled for the first time.
  }
  const { code } = require('@swc/core').transformSync(text, { filename, ...OPTIONS });
  mkdirSync(KEPT, { recursive: true });
  // Others read it as a whole or not at all.
  writeFileSync(`${file}.${process.pid}.${threadId}`, code);
  renameSync(`${file}.${process.pid}.${threadId}`, file);
  return code;
}

require.extensions['.ts'] = (module, filename) => {
  // oxlint-disable-next-line no-underscore-dangle -- the name that Node gave it
  module._compile(compile(filename), filename);
};
