import { parseHostPort } from './host-port';
import { text, textLike } from './text';
import { accepted, refused, type ValueType } from './value-type';

const socket = textLike(/^unix:.+$/, 'socket');

/** Where a gRPC server is. A target of another scheme would be taken for a host name, and looked up in vain for ever. */
export const grpcTarget: ValueType<string> = {
  ...text('host:port, dns:///host:port or unix:path'),
  read(given) {
    if ('value' in socket.read(given)) return accepted(given);
    const address = parseHostPort(given.replace(/^dns:(?:\/\/[^/]*\/)?/, ''));
    return address !== undefined && address.host !== '' ? accepted(given) : refused();
  },
};
