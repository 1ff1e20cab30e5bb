import { group, setting } from './setting';
import { duration } from '../values/duration';
import { hostName } from '../values/addresses';
import { port } from '../values/numbers';
import { filePath } from '../values/text';

const HOUR = 3_600_000;

export const listenerSettings = group({
  title: 'Listeners',
  note: '0.0.0.0 listens on IPv6 too, where there is one. Port 0 lets the system choose.',
  settings: [
    setting({
      field: 'host',
      name: 'HOST',
      type: hostName,
      default: '0.0.0.0',
      help: 'Address of the HTTP listener: /json and /healthcheck.',
    }),
    setting({ field: 'port', name: 'PORT', type: port, default: 8080, help: 'Port of the HTTP listener.' }),
    setting({
      field: 'grpcHost',
      name: 'GRPC_HOST',
      type: hostName,
      default: '0.0.0.0',
      help: 'Address of the gRPC listener.',
    }),
    setting({ field: 'grpcPort', name: 'GRPC_PORT', type: port, default: 8081, help: 'Port of the gRPC listener.' }),
    setting({
      field: 'grpcUds',
      name: 'GRPC_UDS',
      type: filePath,
      default: undefined,
      help: 'Unix socket that gRPC listens on, in place of its host and port.',
    }),
    setting({
      field: 'grpcMaxConnectionAge',
      name: 'GRPC_MAX_CONNECTION_AGE',
      type: duration('0 or more'),
      default: 24 * HOUR,
      help: 'Age, give or take 10 %, at which a connection is told to go away; 0: never.',
    }),
    setting({
      field: 'grpcMaxConnectionAgeGrace',
      name: 'GRPC_MAX_CONNECTION_AGE_GRACE',
      type: duration('0 or more'),
      default: HOUR,
      help: 'Time that a connection told to go away still has before it is cut; 0: never cut.',
    }),
    setting({
      field: 'debugHost',
      name: 'DEBUG_HOST',
      type: hostName,
      default: '0.0.0.0',
      help: 'Address of the debug listener: /rlconfig, /stats, profiles.',
    }),
    setting({ field: 'debugPort', name: 'DEBUG_PORT', type: port, default: 6070, help: 'Port of the debug listener.' }),
  ],
});
