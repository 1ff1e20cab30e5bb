import { type HostPort, parseHostPort } from './host-port';
import { accepted, refused, type ValueType } from './value-type';

/** Where to listen, as Go writes it: `:9090` is every address. */
export const listenAddress: ValueType<HostPort> = {
  allowed: '[host]:port',
  read(text) {
    const address = parseHostPort(text);
    if (address === undefined)
      return refused(/^\d+$/.test(text) ? 'a port alone is written with a colon before it' : undefined);
    return accepted(address.host === '' ? { ...address, host: '0.0.0.0' } : address);
  },
  write: ({ host, port }) => `${host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '' : host}:${port}`,
};
