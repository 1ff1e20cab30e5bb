import { lookup } from 'node:dns/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { type CallTls, callHttp, readAnswer } from '../../net/call-http';
import { isPrivateAddress } from '../../net/private-addresses';
import type { FindPeers, Peer } from '../../operators/fleet';
import type { PeerReport } from '../../operators/live-answers';
import { type HostPort, formatHostPort } from '../../text/host-port';
import { codeOf } from '../../text/thrown';
import type { CurrentToken } from './authorization';
import { readReport } from './read-report';

/** For a look-up in DNS, and for the answer of a peer. */
const TIMEOUT_MS = 1_000;
const MAX_ANSWER_BYTES = 256 * 1024;
/** Rest after an answer, so that large ones take little of the time of the event loop. */
const REST_MS_PER_KIB = 10;

/** One instance, or a name that has the address of each instance. */
export interface PeerAddress extends HostPort {
  /** As it was written. */
  readonly text: string;
  /** Whether each address of the name is an instance. */
  readonly isDns: boolean;
  readonly isTls: boolean;
}

export interface PeersOptions {
  /** OPERATOR_PEERS */
  readonly addresses: readonly PeerAddress[];
  readonly currentToken: CurrentToken;
  /** What a connection with TLS trusts. */
  readonly trust: () => Pick<CallTls, 'context' | 'known'>;
}

/** Finds the instances of these addresses, and asks them by the operators' API. */
export function peersAt(options: PeersOptions): FindPeers {
  return async () => (await Promise.all(options.addresses.map((address) => peersOf(address, options)))).flat();
}

async function peersOf(address: PeerAddress, options: PeersOptions): Promise<readonly Peer[]> {
  const { text, host, port, isDns } = address;
  if (!isDns) return [{ address: text, ask: async () => report((await resolved(host))[0]!, address, options) }];
  try {
    return (await resolved(host)).map((ip) => ({
      address: formatHostPort(ip, port),
      ask: () => report(ip, address, options),
    }));
  } catch (error) {
    return [{ address: text, ask: () => Promise.reject(error) }];
  }
}

/** @throws Error when there are none, or when that is not known in time */
async function resolved(host: string): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('its name could not be looked up in time')), TIMEOUT_MS);
  });
  const found = lookup(host, { all: true }).catch((cause: unknown) => {
    throw new Error(`its name cannot be looked up (${codeOf(cause)})`, { cause });
  });
  try {
    return (await Promise.race([found, late])).map(({ address }) => address);
  } finally {
    clearTimeout(timer);
  }
}

/** What the instance at an IP address reports. It is called by this address, which every instance accepts. */
async function report(ip: string, { host, port, isTls }: PeerAddress, options: PeersOptions): Promise<PeerReport> {
  const token = options.currentToken();
  if (token !== undefined && !isTls && !isPrivateAddress(ip)) {
    throw new Error(
      'it is not asked, as the operator token is sent only over TLS, or to loopback and private addresses',
    );
  }
  let characters = 0;
  try {
    // Read at once: what is kept of an answer is little, and texts that are not kept for long cost less.
    return await callHttp({
      host: ip,
      port,
      path: '/api/instance',
      headers: {
        Accept: 'application/vnd.weir+json;version=1',
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
      tls: isTls ? { name: host, ...options.trust() } : undefined,
    }).then((answer) => {
      characters = answer.text.length;
      if (answer.status !== 200) readAnswer(answer, 'it');
      return readReport(answer.text);
    });
  } finally {
    await pause((REST_MS_PER_KIB * characters) / 1024);
  }
}
