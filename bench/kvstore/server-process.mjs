// A server in a process of its own: says its port, then answers what it is asked about itself.
const [, , kind, dist, redisPort, keys] = process.argv;
const { start } = await import(`./servers/${kind}.mjs`);
const { port, progress } = await start({ dist, redisPort: Number(redisPort), keys: Number(keys) });

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpu: user + system, decisions: progress?.() });
});
process.send(port);
