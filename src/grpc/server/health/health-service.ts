import { type Observable, distinctUntilChanged, map, take } from 'rxjs';
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthListResponse,
} from '../../../gen/grpc/health/v1/health';
import { GrpcStatus, type StreamingMethods, type UnaryMethods } from '../../method';

const SERVICE = '/grpc.health.v1.Health';
/** The whole server, by its empty name and by the one the Go service uses, and the service it is there for. */
const NAMES: readonly string[] = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'];

/**
 * `grpc.health.v1.Health`. Every name it knows has the health of the whole.
 *
 * @param health$ tells the present health when subscribed to, then every change; until it has told, nothing is serving. It
 * is subscribed to for each Check and List, and for as long as each Watch lasts.
 */
export function healthService(health$: Observable<{ readonly healthy: boolean }>): {
  readonly unary: UnaryMethods;
  readonly streaming: StreamingMethods;
} {
  const status$ = health$.pipe(
    map(({ healthy }) => (healthy ? ServingStatus.SERVING : ServingStatus.NOT_SERVING)),
    distinctUntilChanged(),
  );
  function present(): ServingStatus {
    let status = ServingStatus.NOT_SERVING;
    status$
      .pipe(take(1))
      .subscribe((told) => {
        status = told;
      })
      .unsubscribe();
    return status;
  }

  const unary: UnaryMethods = new Map([
    [
      `${SERVICE}/Check`,
      (message, call) => {
        const name = serviceName(message);
        if (name === undefined) call.fail(GrpcStatus.INTERNAL, UNREADABLE);
        else if (!NAMES.includes(name)) call.fail(GrpcStatus.NOT_FOUND, 'unknown service');
        else call.reply(encode(present()));
      },
    ],
    [
      `${SERVICE}/List`,
      (_message, call) => {
        const status = present();
        const statuses = Object.fromEntries(NAMES.map((name) => [name, { status }]));
        call.reply(HealthListResponse.encode({ statuses }).finish());
      },
    ],
  ]);

  const streaming: StreamingMethods = new Map([
    [
      `${SERVICE}/Watch`,
      {
        kind: 'server streaming',
        handle(message, call) {
          const name = serviceName(message);
          if (name === undefined) return call.fail(GrpcStatus.INTERNAL, UNREADABLE);
          // Such a stream stays open: the protocol allows a name to become known.
          if (!NAMES.includes(name)) return call.send(encode(ServingStatus.SERVICE_UNKNOWN));
          let hasTold = false;
          const subscription = status$.subscribe((status) => {
            hasTold = true;
            call.send(encode(status));
          });
          if (!hasTold) call.send(encode(ServingStatus.NOT_SERVING));
          call.onCancel({ cancel: () => subscription.unsubscribe() });
        },
      },
    ],
  ]);
  return { unary, streaming };
}

const UNREADABLE = 'request is not a HealthCheckRequest';

function encode(status: ServingStatus): Uint8Array {
  return HealthCheckResponse.encode({ status }).finish();
}

function serviceName(message: Uint8Array): string | undefined {
  try {
    return HealthCheckRequest.decode(message).service;
  } catch {
    return undefined;
  }
}
