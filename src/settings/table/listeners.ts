import { isNot, isNotSet } from './condition';
import { group, setting } from './setting';
import { duration } from '../values/duration';
import { hostName } from '../values/addresses';
import { port, wholeNumber } from '../values/numbers';
import { socketPath } from '../values/socket-path';
import { operatorToken } from '../values/text';

const HOUR = 3_600_000;

export const listenerSettings = group({
  title: 'Listeners',
  note: '0.0.0.0 also listens on IPv6 where available. With port 0 the system chooses a free port.',
  settings: [
    setting({
      field: 'host',
      name: 'HOST',
      type: hostName,
      default: '0.0.0.0',
      help: 'Address of the HTTP listener, which serves /json and the paths for health checks.',
    }),
    setting({ field: 'port', name: 'PORT', type: port, default: 8080, help: 'Port of the HTTP listener.' }),
    setting({
      field: 'grpcHost',
      name: 'GRPC_HOST',
      type: hostName,
      default: '0.0.0.0',
      requires: [isNotSet('GRPC_UDS')],
      help: 'Address of the gRPC listener.',
    }),
    setting({
      field: 'grpcPort',
      name: 'GRPC_PORT',
      type: port,
      default: 8081,
      requires: [isNotSet('GRPC_UDS')],
      help: 'Port of the gRPC listener.',
    }),
    setting({
      field: 'grpcUds',
      name: 'GRPC_UDS',
      type: socketPath,
      default: undefined,
      help: 'Path of a Unix socket for gRPC, used instead of GRPC_HOST and GRPC_PORT.',
    }),
    setting({
      field: 'grpcMaxConnectionAge',
      name: 'GRPC_MAX_CONNECTION_AGE',
      type: duration('0 or more'),
      default: 24 * HOUR,
      help: 'Age, plus or minus 10 %, at which the server asks a client to reconnect (GOAWAY); 0: never.',
    }),
    setting({
      field: 'grpcMaxConnectionAgeGrace',
      name: 'GRPC_MAX_CONNECTION_AGE_GRACE',
      type: duration('0 or more'),
      default: HOUR,
      requires: [isNot('GRPC_MAX_CONNECTION_AGE', '0')],
      help: 'Time after that GOAWAY at which the connection is closed even if calls are in flight; 0: never.',
    }),
    setting({
      field: 'grpcMaxConnections',
      name: 'GRPC_MAX_CONNECTIONS',
      type: wholeNumber({ min: 1 }),
      default: 16_384,
      help: 'Open gRPC connections; further ones are closed when they are accepted. Each needs a file descriptor.',
    }),
    setting({
      field: 'debugHost',
      name: 'DEBUG_HOST',
      type: hostName,
      default: '0.0.0.0',
      help: 'Address of the debug listener, which serves /rlconfig, /stats, /api and profiles.',
    }),
    setting({ field: 'debugPort', name: 'DEBUG_PORT', type: port, default: 6070, help: 'Port of the debug listener.' }),
    setting({
      field: 'operatorToken',
      name: 'OPERATOR_TOKEN',
      type: operatorToken,
      default: undefined,
      secret: 'value',
      help: "Bearer token of the operators' API: changes, and reads that show callers' values, need it. Without it, changes are off.",
    }),
  ],
});
