// When the process exits, writes the names of the packages that it has loaded, one per line, to the file
// LIST_LOADED_TO.
const { writeFileSync } = require('node:fs');

const IN_PACKAGE = /node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)[/\\](?!.*node_modules)/;

process.once('exit', () => {
  const packages = new Set(Object.keys(require.cache).map((file) => IN_PACKAGE.exec(file)?.[1] ?? 'weir'));
  writeFileSync(process.env.LIST_LOADED_TO, [...packages].sort().join('\n'));
});
