// A memcached for one run, and its own usage figures.
import { once } from 'node:events';
import net from 'node:net';
import { startStore } from '../service/store-process.mjs';

export async function startMemcached() {
  // `-u` has an effect only when root starts it, and then it is required.
  const store = await startStore('memcached', (port) => [
    '-u',
    'root',
    '-l',
    '127.0.0.1',
    '-p',
    String(port),
    '-U',
    '0',
  ]);
  const control = net.connect({ port: store.port, host: '127.0.0.1' });
  control.setEncoding('latin1');
  await once(control, 'connect');
  return {
    port: store.port,
    /** CPU time in µs since its start. */
    async usage() {
      control.write('stats\r\n');
      let text = '';
      while (!text.endsWith('END\r\n')) text += (await once(control, 'data'))[0];
      function read(name) {
        return Number(new RegExp(`^STAT ${name} ([\\d.]+)\r$`, 'm').exec(text)[1]);
      }
      return { cpu: (read('rusage_user') + read('rusage_system')) * 1e6 };
    },
    async stop() {
      control.destroy();
      await store.stop();
    },
  };
}
