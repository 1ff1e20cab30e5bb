// A server in a process of its own. Sends its port to the parent, then its CPU time and its number of decisions on request.
const [, , module, options] = process.argv;
const { start } = await import(module);
const { port, progress } = await start(JSON.parse(options));

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpu: user + system, decisions: progress?.() });
});
process.send(port);
