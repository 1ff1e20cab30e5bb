// A program that starts the service by `run`, the export of the package, and does not end by itself. When the service
// has ended, it writes the exit code, and which of its ports still accept connections.
const net = require('node:net');
const path = require('node:path');
const { run } = require(path.join(__dirname, '../../../dist/main.js'));

const PORTS = ['PORT', 'GRPC_PORT', 'DEBUG_PORT'];

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ port: Number(port), host: '127.0.0.1' });
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
  });
}

run(process.env).then(async (code) => {
  const open = [];
  for (const name of PORTS) if (await accepts(process.env[name])) open.push(name);
  process.stdout.write(`run() has returned ${code}; open: ${open.join() || 'none'}\n`);
});
// What an application has open besides the service.
setInterval(() => undefined, 60_000);
