import { choice } from './choices';
import { text } from './text';

/** The value types that both instances of the key-value store share. */
export const storeUrl = text(
  'host:port, socket path, or redis:// or rediss:// URL; sentinel: master name and servers; cluster: servers',
);
export const storeType = choice({ single: [], sentinel: [], cluster: [] });
export const socketType = choice({ tcp: [], tcp4: [], tcp6: [], unix: [] });
export const poolOnEmpty = choice({ CREATE: [], ERROR: [], WAIT: [] });
export const credentials = text('password or username:password');
