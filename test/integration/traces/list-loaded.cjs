// Writes, when the process ends, the packages whose files it has loaded, a line each, to the file that LIST_LOADED_TO names.
const { writeFileSync } = require('node:fs');

const IN_PACKAGE = /node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)[/\\](?!.*node_modules)/;

process.once('exit', () => {
  const packages = new Set(Object.keys(require.cache).map((file) => IN_PACKAGE.exec(file)?.[1] ?? 'weir'));
  writeFileSync(process.env.LIST_LOADED_TO, [...packages].sort().join('\n'));
});
