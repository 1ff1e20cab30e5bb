// A store's server process for one run. It ends with this process, also because of an error or a signal.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { killAtExit } from './kill-at-exit.mjs';

/**
 * @param command the program, in PATH
 * @param argumentsFor returns its arguments, given the port to listen on
 * @param onKilled called when this process ends before the store is stopped
 * @returns the port on 127.0.0.1, once it accepts connections, and `stop`
 */
export async function startStore(command, argumentsFor, onKilled) {
  const port = await freePort();
  const child = spawn(command, argumentsFor(port), { stdio: 'ignore' });
  const failed = new Promise((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${command} exited with ${code}`)));
  });
  failed.catch(() => undefined);
  killAtExit(child, onKilled);
  await Promise.race([failed, accepting(port)]);
  return {
    port,
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function accepting(port) {
  for (;;) {
    const socket = net.connect({ port, host: '127.0.0.1' });
    const isOpen = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
