import type { Context } from 'koa';
import { type ServedApp, serve } from './serve-api';

/** Serves an action that throws an error. */
function serveThrowing(error: () => unknown): Promise<ServedApp> {
  class Throwing {
    index(ctx: Context) {
      ctx.vary('Origin');
      throw error();
    }
  }
  return serve((it) => it.version(1, () => it.resources('foo', { only: 'index' })), { controllers: () => Throwing });
}

function conflict(headers: object): Error {
  return Object.assign(new Error('no'), { status: 409, expose: true, headers });
}

class GetterOnly extends Error {
  readonly status = 409;
  readonly expose = true;
  get headers() {
    return { 'X-Reason': 'busy' };
  }
}

describe('an error of an action', () => {
  it.each([
    ['without headers', () => Object.assign(new Error('no'), { status: 409 }), 'Accept'],
    ['with another Vary', () => conflict({ Vary: 'Origin' }), 'Origin, Accept'],
    ['with another vary in lower case', () => conflict({ vary: 'Origin' }), 'Origin, Accept'],
    ['with a list of fields', () => conflict({ Vary: ['Origin', 'Cookie'] }), 'Origin, Cookie, Accept'],
    ['with an empty Vary', () => conflict({ Vary: '' }), 'Accept'],
    ['with Accept in Vary', () => conflict({ Vary: 'Origin,accept' }), 'Origin,accept'],
    ['with Accept-Encoding in Vary', () => conflict({ Vary: 'Accept-Encoding' }), 'Accept-Encoding, Accept'],
    ['with Vary: *', () => conflict({ Vary: '*' }), '*'],
    ['whose headers have only a getter', () => new GetterOnly('no'), 'Accept'],
  ])('%s is answered with its own status and Vary: Accept', async (_what, error, vary) => {
    await using app = await serveThrowing(error);
    const { status, headers } = await app.get('/api/foo');
    expect([status, headers.vary]).toEqual([409, vary]);
  });

  it('is answered with its own status when headers cannot be added to it', async () => {
    await using app = await serveThrowing(() =>
      Object.preventExtensions(Object.assign(new Error('no'), { status: 409 })),
    );
    expect((await app.get('/api/foo')).status).toBe(409);
  });

  it('that is thrown twice has Accept in Vary once', async () => {
    const error = conflict({ Vary: 'Origin' });
    await using app = await serveThrowing(() => error);
    await app.get('/api/foo');
    expect((await app.get('/api/foo')).headers.vary).toBe('Origin, Accept');
  });
});
