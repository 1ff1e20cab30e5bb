// A server in a process of its own. Sends its port to the parent, then its CPU time and its number of decisions on request.
const [, , kind, dist, redisPort, keys] = process.argv;
const { start } = await import(`./servers/${kind}.mjs`);
const { port, progress } = await start({ dist, redisPort: Number(redisPort), keys: Number(keys) });

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpu: user + system, decisions: progress?.() });
});
process.send(port);
