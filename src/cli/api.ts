import { type SecureContext, createSecureContext } from 'node:tls';
import { operatorToken } from '../settings/values/value-type';
import { readSecretFile } from '../sources/secret-files';
import { hideAddressCredentials } from '../text/hide-credentials';
import { type HostPort, parseServerAddress } from '../text/host-port';
import { messageOf } from '../text/thrown';
import { visibleLine } from '../text/visible';
import { type CallTls, type HttpCall, callHttp, readAnswer } from '../net/call-http';
import { MAX_TLS_FILE_BYTES, checkedContext, readSmallFile } from '../net/reloaded-files';
import { trustedRoots } from '../net/trusted-roots';
import { FlagError } from './flags';

/** Where the API is, and with what it is called. */
export interface ApiTarget {
  /** `host:port` of the debug listener, after `https://` if it has TLS. */
  readonly address: string;
  /** PEM file with an authority that is trusted in addition to those of the system; empty: none. */
  readonly caFile?: string | undefined;
  /** File of the certificate of the service with the same environment, which is accepted whatever its name is. */
  readonly ownCertificate?: string | undefined;
  /** Undefined: without a token. */
  readonly token: string | undefined;
  readonly timeoutMs: number;
}

export interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below /api. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/**
 * Calls the operators' API.
 *
 * @returns the JSON of the answer
 * @throws {FlagError} for an invalid address, before anything is sent
 * @throws Error with a message of one sentence when there is none, or it is an error
 */
export async function callApi(target: ApiTarget, request: ApiRequest): Promise<unknown> {
  const { address, token, timeoutMs } = target;
  const { method = 'GET', path, query = {}, body } = request;
  const search = new URLSearchParams(query).toString();
  const answer = await callHttp({
    ...serverAt(target),
    method,
    path: `/api/${path}${search === '' ? '' : `?${search}`}`,
    headers: {
      Accept: 'application/vnd.weir+json;version=1',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    body: body && JSON.stringify(body),
    timeoutMs,
  }).catch((error: unknown) => {
    throw new Error(`cannot call the API at ${address}: ${messageOf(error)}`, { cause: error });
  });
  if (answer.status === 401 && token === undefined) throw new Error(NO_TOKEN);
  return readAnswer(answer, address);
}

const NO_TOKEN = 'this needs the operator token: give -token_file, OPERATOR_TOKEN or OPERATOR_TOKEN_FILE';

/**
 * The server of an address that is nothing but a host and a port: other parts of a URL would send the token elsewhere.
 */
function serverAt({ address, caFile = '', ownCertificate }: ApiTarget): HostPort & Pick<HttpCall, 'tls'> {
  const plain = address.replace(/^https:\/\//, '');
  const server = parseServerAddress(plain);
  if (server !== undefined) {
    if (ownCertificate !== undefined) return { ...server, tls: ownTls(server.host, ownCertificate) };
    return plain === address ? server : { ...server, tls: { name: server.host, context: contextOf(caFile) } };
  }
  throw new FlagError(
    `invalid address "${visibleLine(hideAddressCredentials(address))}": expected host:port or https://host:port`,
  );
}

/** What the listener of the service with the same settings presents. @param certificate its file */
export function ownTls(name: string, certificate: string): CallTls {
  return { name, context: createSecureContext(), known: readPem(certificate) };
}

function contextOf(caFile: string): SecureContext {
  const ca = caFile === '' ? undefined : { name: caFile, text: readPem(caFile) };
  return checkedContext({ ca, cert: undefined, key: undefined }, trustedRoots());
}

/** @throws {FlagError} when it cannot be read @param name how the message names it */
export function readPem(path: string, name = path): string {
  try {
    return new TextDecoder().decode(readSmallFile(path, MAX_TLS_FILE_BYTES));
  } catch (cause) {
    throw new FlagError(`cannot use the file ${name}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * The operator token: that of a file, or the variable OPERATOR_TOKEN, or the file of OPERATOR_TOKEN_FILE. It is no
 * flag, because other users of the machine can see command lines.
 *
 * @throws {FlagError} when there is no token in it, or the file cannot be read; the message quotes neither
 */
export function tokenFrom(file: string, environment: NodeJS.ProcessEnv): string | undefined {
  const [token, fileOfVariable] = ['OPERATOR_TOKEN', 'OPERATOR_TOKEN_FILE'].map((name) => environment[name]?.trim());
  const path = file || (token ? '' : fileOfVariable);
  if (!path) return token ? tokenIn(token, 'OPERATOR_TOKEN is invalid; allowed: ') : undefined;
  try {
    return tokenIn(readSecretFile(path).trim(), 'it must contain ');
  } catch (cause) {
    throw new FlagError(`cannot use the file of the operator token: ${messageOf(cause)}`, { cause });
  }
}

/** Rejects what cannot be the operator token of a service. */
function tokenIn(text: string, otherwise: string): string {
  if ('value' in operatorToken.parse(text)) return text;
  throw new FlagError(`${otherwise}${operatorToken.allowed}`);
}

/**
 * An address in which `$NAME` stands for the port of a listener of the service with the same environment.
 *
 * @param byDefault the port when the variable is not set
 * @throws {FlagError} when the value of the variable is no port
 */
export function withPort(
  address: string,
  [name, value = '']: readonly [name: string, value: string | undefined],
  byDefault: number,
): string {
  if (!address.includes(`$${name}`)) return address;
  const port = value.trim() || String(byDefault);
  if (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535) return address.replace(`$${name}`, port);
  throw new FlagError(`${name}=${visibleLine(port)} is no port that can be connected to: set it, or give -address`);
}
