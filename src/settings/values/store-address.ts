import { parseHostPort } from './host-port';

/** Whether an address is the path of a Unix socket. */
export function isSocketPath(address: string): boolean {
  return /^(?:unix:)?(?:\/\/)?\//.test(address);
}

/** Whether a text names a server by host and port, both given. */
export function isServer(text: string): boolean {
  const address = parseHostPort(text);
  return address !== undefined && address.host !== '' && address.port > 0;
}

/** Whether a text is an address of a key-value store: host:port, a socket's path, or a `redis://` or `rediss://` URL. */
export function isStoreAddress(text: string): boolean {
  return isServer(text) || isSocketPath(text) || (/^rediss?:\/\/[^/]/i.test(text) && URL.canParse(text));
}
