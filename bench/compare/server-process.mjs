// A server in a process of its own. Arguments: its name in servers/, the folder of a build, the address of a store, and
// the protocol of the load. Sends its port to its parent, and its resident memory in bytes, after a collection of
// garbage, for each message.
const [, , kind, dist, store, protocol] = process.argv;
const { start } = await import(`./servers/${kind}.mjs`);
const port = await start({ dist, store, protocol });

process.on('message', () => {
  globalThis.gc();
  process.send(process.memoryUsage.rss());
});
// Also when the benchmark was killed.
process.on('disconnect', () => process.exit());
process.send(port);
