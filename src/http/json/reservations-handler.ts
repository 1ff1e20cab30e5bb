import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { EndedReservation, Reservations, Reserved } from '../../streams/ports/reservations';
import { type BodyMemory, receiveText } from '../body';
import {
  CallerDisconnected,
  HttpError,
  MalformedBody,
  errorBody,
  methodNotAllowed,
  respondJson,
  responseTo,
} from '../errors';
import { type JsonHandlerOptions, rejectBody, writeVerdict } from './json-handler';
import { readReservation, readSettlement } from './read-request';

export interface ReservationsHandlerOptions extends Pick<JsonHandlerOptions, 'onMalformed' | 'onRejected' | 'log'> {
  readonly reservations: Reservations;
}

const PATH = '/v1/reservations';

interface Answer {
  readonly status: number;
  readonly json: string;
}

/**
 * `POST /v1/reservations`, `POST /v1/reservations/{id}/settle` and `DELETE /v1/reservations/{id}`; passes other requests on. The
 * Content-Type of a request is ignored. A call is carried out even if its caller disconnects, who can send it again with the same id.
 */
export function reservationsHandler(options: ReservationsHandlerOptions, memory: BodyMemory): Middleware {
  const { reservations, log } = options;

  return (ctx, next) => {
    const { path, req, res } = ctx;
    if (path !== PATH && !path.startsWith(`${PATH}/`)) return next();
    ctx.respond = false;
    return answer(path.slice(PATH.length + 1).split('/'), req).then(
      ({ status, json }) => respondJson(res, { status }, json),
      (error: unknown) => {
        if (error instanceof CallerDisconnected) return;
        if (error instanceof MalformedBody) options.onMalformed(error.message, req.socket);
        const response = responseTo(error, log);
        respondJson(res, response, errorBody(response));
      },
    );

    async function answer([id = '', action, ...rest]: readonly string[], request: IncomingMessage): Promise<Answer> {
      const caller = { peer: request.socket, metadata: (name: string) => request.headersDistinct[name]?.[0] };
      if (id === '') {
        if (request.method !== 'POST') throw methodNotAllowed(request.method ?? '', 'POST');
        return reserved(await reservations.reserve({ ...readReservation(await bodyOf(request, res)), caller }));
      }
      if (action === undefined) {
        if (request.method !== 'DELETE') throw methodNotAllowed(request.method ?? '', 'DELETE');
        return ended(await reservations.cancel(id, caller));
      }
      if (action !== 'settle' || rest.length > 0) {
        throw new HttpError({ status: 404, code: 'not_found', message: 'a reservation has only the action settle' });
      }
      if (request.method !== 'POST') throw methodNotAllowed(request.method ?? '', 'POST');
      return ended(await reservations.settle(id, readSettlement(await bodyOf(request, res)), caller));
    }
  };

  function bodyOf(req: IncomingMessage, res: ServerResponse): Promise<string> {
    return receiveText({ req, res }, memory, (rejection) => rejectBody(rejection, { req, res }, options.onRejected));
  }
}

function reserved({ id, verdict, expiresAt }: Reserved): Answer {
  const decision = `"decision":${writeVerdict(verdict)}}`;
  if (id === undefined) return { status: 429, json: `{${decision}` };
  const opened = JSON.stringify({ id, expiresAt: new Date(expiresAt).toISOString() });
  return { status: 201, json: `${opened.slice(0, -1)},${decision}` };
}

/** Numbers of 64 bits are texts in proto3 JSON. */
function ended({ id, state, descriptors }: EndedReservation): Answer {
  const texts = descriptors.map(({ reserved: before, hits, added }) => ({
    reserved: String(before),
    hits: String(hits),
    added: String(added),
  }));
  return { status: 200, json: JSON.stringify({ id, state, descriptors: texts }) };
}
