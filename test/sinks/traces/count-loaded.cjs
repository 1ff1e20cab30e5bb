// Says, when the process ends, how many files of OpenTelemetry it has loaded.
process.once('exit', () => {
  const loaded = Object.keys(require.cache).filter((file) => file.includes('@opentelemetry'));
  process.stderr.write(`loaded ${loaded.length} files of OpenTelemetry\n`);
});
