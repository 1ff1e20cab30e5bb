// A server in a process of its own: says its port, then answers what it is asked about itself.
const [, , kind, dist] = process.argv;
const { start } = await import(`./servers/${kind}.mjs`);
const port = await start({ dist });

process.on('message', (question) => {
  if (question === 'cpu') {
    const { user, system } = process.cpuUsage();
    process.send(user + system);
  } else if (question === 'memory') {
    globalThis.gc();
    process.send(process.memoryUsage.rss());
  }
});
process.send(port);
