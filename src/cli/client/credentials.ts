import { readFileSync } from 'node:fs';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { trustedRoots } from '../../net/trusted-roots';
import { messageOf } from '../../text/thrown';
import { FlagError } from '../flags';

/** The flags that configure TLS. */
export interface TlsFlags {
  readonly 'grpc-use-tls': boolean;
  readonly 'grpc-server-ca-file': string;
  readonly 'grpc-cert-file': string;
  readonly 'grpc-key-file': string;
}

type FileFlag = Exclude<keyof TlsFlags, 'grpc-use-tls'>;
const FILE_FLAGS: readonly FileFlag[] = ['grpc-server-ca-file', 'grpc-cert-file', 'grpc-key-file'];

/**
 * The credentials of the connection.
 *
 * @throws {FlagError} for flags that contradict each other and for invalid files
 */
export function channelCredentials(flags: TlsFlags): ChannelCredentials {
  if (!flags['grpc-use-tls']) {
    const given = FILE_FLAGS.find((name) => flags[name] !== '');
    if (given !== undefined) throw new FlagError(`flag -${given} requires -grpc-use-tls`);
    return credentials.createInsecure();
  }
  if ((flags['grpc-cert-file'] === '') !== (flags['grpc-key-file'] === '')) {
    throw new FlagError('flags -grpc-cert-file and -grpc-key-file must be used together');
  }
  const [ca, certificate, key] = FILE_FLAGS.map((name) => read(name, flags[name]));
  try {
    return credentials.createSsl(ca ?? Buffer.from(trustedRoots().join('\n')), key, certificate);
  } catch (cause) {
    throw new FlagError(`invalid TLS files: ${messageOf(cause)}`, { cause });
  }
}

function read(flag: FileFlag, path: string): Buffer | null {
  if (path === '') return null;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new FlagError(`cannot read the file of flag -${flag}: ${messageOf(cause)}`, { cause });
  }
}
