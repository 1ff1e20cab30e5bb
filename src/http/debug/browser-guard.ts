import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { Context } from 'koa';
import { excerpt } from '../../text/excerpt';
import { type ErrorResponse, HttpError } from '../errors';

/** Paths that probes of any kind request, and that show nothing. */
const PROBES: readonly string[] = ['/healthcheck', '/livez', '/readyz'];

const HEADERS = {
  // No page may show one of ours in a frame, where a user could be made to press its buttons.
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
};

const OWN_NAMES = 'call it by its address, or add the name to DEBUG_ALLOWED_HOSTS and start the service again';
const CROSS_SITE: ErrorResponse = {
  status: 403,
  code: 'cross_site',
  message:
    'the request comes from a page of another site: open the debug listener itself in the browser; ' +
    'a proxy before it must pass on the header Host as it is',
};

/**
 * Keeps the pages of other sites, which an operator has open in a browser, from what this listener shows: a browser is
 * inside of the network. Programs send neither Origin nor Sec-Fetch-Site, browsers send the latter only to loopback and
 * over TLS.
 *
 * @param allowedHosts the names by which the listener may be called, in addition to those that no other site can
 *   have; `*.` stands for any labels
 */
export function browserGuard(allowedHosts: readonly string[]): (ctx: Context) => void {
  const names = [hostname(), 'localhost', '*.localhost', ...allowedHosts].map((name) => name.toLowerCase());
  return (ctx) => {
    ctx.set(HEADERS);
    if (PROBES.includes(ctx.path)) return;
    const host = nameIn(ctx.host);
    if (!isAllowed(host, names)) {
      const message = `the debug listener is not known by the name ${excerpt(host, 100)}: ${OWN_NAMES}`;
      throw new HttpError({ status: 421, code: 'unknown_host', message });
    }
    if (isFromAnotherSite(ctx)) throw new HttpError(CROSS_SITE);
  };
}

/** The host without its port and the dot at its end. Empty without a Host header, as in HTTP/1.0. */
function nameIn(host: string): string {
  return host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/(?<=.)\.$/, '');
}

/**
 * Another site can let its own name resolve to the address of this listener, and its page is then of the same origin
 * (DNS rebinding). It cannot have an address, or a name of one label, as those of Kubernetes and Compose are.
 */
function isAllowed(host: string, names: readonly string[]): boolean {
  if (!host.includes('.') || isIP(host) !== 0 || host.startsWith('[')) return true;
  return names.some((name) => (name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name));
}

function isFromAnotherSite(ctx: Context): boolean {
  const [site, mode, destination] = ['Site', 'Mode', 'Dest'].map((name) => ctx.get(`Sec-Fetch-${name}`));
  // A link, which may be in a chat: the other page does not see what it opens.
  if (ctx.method === 'GET' && mode === 'navigate' && destination === 'document') return false;
  if (site !== '' && site !== 'same-origin' && site !== 'none') return true;
  const origin = ctx.get('Origin');
  // The scheme differs behind TLS.
  return origin !== '' && origin.toLowerCase().replace(/^https?:\/\//, '') !== ctx.host.toLowerCase();
}
