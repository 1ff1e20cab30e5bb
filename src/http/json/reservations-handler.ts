import type { Context, Middleware } from 'koa';
import type { EndedReservation, Reservations, Reserved } from '../../streams/ports/reservations';
import { type BodyMemory, receiveText } from '../body';
import { HttpError, MalformedBody, methodNotAllowed } from '../errors';
import { type JsonHandlerOptions, writeVerdict } from './json-handler';
import { readReservation, readSettlement } from './read-request';

export interface ReservationsHandlerOptions extends Pick<JsonHandlerOptions, 'onMalformed'> {
  readonly reservations: Reservations;
}

const PATH = '/v1/reservations';

interface Answer {
  readonly status: number;
  readonly json: string;
}

/**
 * `POST /v1/reservations`, `POST /v1/reservations/{id}/settle` and `DELETE /v1/reservations/{id}`; passes other
 * requests on. The Content-Type of a request is ignored. A call is carried out even if its caller disconnects, who can
 * send it again with the same id.
 */
export function reservationsHandler(options: ReservationsHandlerOptions, memory: BodyMemory): Middleware {
  const { reservations, onMalformed } = options;

  async function answer(ctx: Context, [id = '', action, ...rest]: readonly string[]): Promise<Answer> {
    const caller = { peer: ctx.req.socket, metadata: (name: string) => ctx.req.headersDistinct[name]?.[0] };
    if (id !== '' && action !== undefined && (action !== 'settle' || rest.length > 0)) {
      throw new HttpError({ status: 404, code: 'not_found', message: 'a reservation has only the action settle' });
    }
    const method = id !== '' && action === undefined ? 'DELETE' : 'POST';
    if (ctx.method !== method) throw methodNotAllowed(ctx.method, method);
    if (method === 'DELETE') return ended(await reservations.cancel(id, caller));
    const body = await receiveText(ctx, memory);
    if (id === '') return reserved(await reservations.reserve({ ...readReservation(body), caller }));
    return ended(await reservations.settle(id, readSettlement(body), caller));
  }

  return async (ctx, next) => {
    const { path } = ctx;
    if (path !== PATH && !path.startsWith(`${PATH}/`)) {
      await next();
      return;
    }
    try {
      const { status, json } = await answer(ctx, path.slice(PATH.length + 1).split('/'));
      ctx.status = status;
      ctx.set('Content-Type', 'application/json');
      ctx.body = json;
    } catch (error) {
      if (error instanceof MalformedBody) onMalformed(error.message, ctx.req.socket, PATH);
      throw error;
    }
  };
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
