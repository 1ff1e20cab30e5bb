// A server in a process of its own. Sends its port to the parent, then its CPU time or its memory on request.
const [, , kind, dist] = process.argv;
const { start } = await import(`./servers/${kind}.mjs`);
const port = await start({ dist });

process.on('message', (measurement) => {
  if (measurement === 'cpu') {
    const { user, system } = process.cpuUsage();
    process.send(user + system);
  } else if (measurement === 'memory') {
    globalThis.gc();
    process.send(process.memoryUsage.rss());
  }
});
process.send(port);
