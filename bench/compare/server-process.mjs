// A server in a process of its own. Arguments: its name in servers/, the folder of a build, and the address of a store.
// Sends its port to its parent, and its resident memory in bytes, after a collection of garbage, for each message.
const [, , kind, dist, store] = process.argv;
const { start } = await import(`./servers/${kind}.mjs`);
const port = await start({ dist, store });

process.on('message', () => {
  globalThis.gc();
  process.send(process.memoryUsage.rss());
});
// Also when the benchmark was killed.
process.on('disconnect', () => process.exit());
process.send(port);
