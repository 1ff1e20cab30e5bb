import { lookup } from 'node:dns/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { type CallTls, type HttpCall, callHttp, readAnswer } from '../../net/call-http';
import { isPrivateAddress } from '../../net/private-addresses';
import { type FindPeers, LEAVE_WAIT_MS, type Peer, SAMPLES_ASKED } from '../../operators/fleet/fleet';
import { type HostPort, formatHostPort } from '../../text/host-port';
import { codeOf } from '../../text/thrown';
import type { CurrentToken } from './authorization';
import { MOST_CHANGES, readChanges, readHistory, readReport, readWatch } from './read-report';

/** For a look-up in DNS, and for the answer of a peer. */
const TIMEOUT_MS = 1_000;
const MAX_ANSWER_BYTES = 256 * 1024;
/** The most bytes of an answer with samples or changes. */
const MAX_PART_BYTES = 64 * 1024;
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
  if (!isDns) return [peerAt(text, async () => (await resolved(host))[0]!, address, options)];
  try {
    return (await resolved(host)).map((ip) => peerAt(formatHostPort(ip, port), async () => ip, address, options));
  } catch (error) {
    return [peerAt(text, () => Promise.reject(error), address, options)];
  }
}

// oxlint-disable-next-line max-params -- what it is called, where it is, and how it is asked
function peerAt(
  address: string,
  findIp: () => Promise<string>,
  { host, port, isTls }: PeerAddress,
  { currentToken, trust }: PeersOptions,
): Peer {
  /** Reads what the instance answers. It is called by its IP address, which every instance accepts. */
  async function call<Answer>(
    path: string,
    read: (text: string) => Answer,
    how: Partial<Pick<HttpCall, 'method' | 'maxBytes' | 'timeoutMs'>> = {},
  ): Promise<Answer> {
    const ip = await findIp();
    const token = currentToken();
    if (token !== undefined && !isTls && !isPrivateAddress(ip)) {
      throw new Error(
        'it is not asked, as the operator token is sent only over TLS, or to loopback and private addresses',
      );
    }
    let characters = 0;
    try {
      // Read at once: what is kept of an answer is little, and texts that are not kept for long cost less.
      return await callHttp({
        ...{ host: ip, port, path: `/api/${path}`, maxBytes: MAX_PART_BYTES, timeoutMs: TIMEOUT_MS, ...how },
        headers: {
          Accept: 'application/vnd.weir+json;version=1',
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        },
        tls: isTls ? { name: host, ...trust() } : undefined,
      }).then((answer) => {
        characters = answer.text.length;
        if (answer.status !== 200) readAnswer(answer, 'it');
        return read(answer.text);
      });
    } finally {
      await pause((REST_MS_PER_KIB * characters) / 1024);
    }
  }
  return {
    address,
    ask: () => call('instance', readReport, { maxBytes: MAX_ANSWER_BYTES }),
    history(id, since) {
      const query = new URLSearchParams({ instance: id, since: String(since), most: String(SAMPLES_ASKED) });
      return call(`history?${String(query)}`, readHistory);
    },
    changes: () => call(`changes?top=${MOST_CHANGES}`, readChanges),
    watch({ domain, entries }) {
      const query = new URLSearchParams({ domain, descriptor: JSON.stringify({ entries }), own: 'true' });
      return call(`watches?${String(query)}`, readWatch);
    },
    leaves: (id) => {
      const how = { method: 'PUT', timeoutMs: LEAVE_WAIT_MS };
      return call(`departures/${encodeURIComponent(id)}`, () => undefined, how);
    },
  };
}

/** @throws Error when there are none, or when that is not known in time */
async function resolved(host: string): Promise<readonly string[]> {
  const late = pause(TIMEOUT_MS, undefined, { ref: false }).then((): never => {
    throw new Error('its name could not be looked up in time');
  });
  const found = lookup(host, { all: true }).catch((cause: unknown) => {
    throw new Error(`its name cannot be looked up (${codeOf(cause)})`, { cause });
  });
  return (await Promise.race([found, late])).map(({ address }) => address);
}
