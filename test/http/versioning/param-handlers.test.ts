import { Router } from '@koa/router';
import type { Next } from 'koa';
import { type Api, api } from '../../../src/http/versioning';
import { ServedApp, acme, appOf, describing } from './serve-api';

/** A handler of parameters that notes the values that it is called with. */
function noting() {
  const values: string[] = [];
  function note(value: string, _ctx: unknown, next: Next) {
    values.push(value);
    return next();
  }
  return { values, note };
}

function books(it: Api): void {
  it.version(1, () => it.resources('books', { only: ['show', 'edit'] }));
}

/** Two blocks with the same paths: the vendor a has the format json, the vendor b has xml. */
function declareBoth(router: Router): void {
  api(router, { vendorString: 'a', controllers: describing, formats: ['json'] }, books);
  api(router, { vendorString: 'b', controllers: describing, formats: ['xml'] }, books);
}

const A = 'application/vnd.a+json';
const B = 'application/vnd.b+json';

/** The address of a book, the header of the request, what handlers must see, and the parameters of the action. */
const READINGS: readonly [path: string, accept: string, id: string, params: string][] = [
  ['/api/books/1.xml', A, '1.xml', '{"id":"1.xml"}'],
  ['/api/books/1.json', A, '1', '{"id":"1","format":"json"}'],
  ['/api/books/1.xml', B, '1', '{"id":"1","format":"xml"}'],
  ['/api/books/1.json', B, '1.json', '{"id":"1.json"}'],
];

describe('a handler of a parameter, where several blocks have the same paths', () => {
  it.each(READINGS)('is called for %s of %s with the value that the action gets', async (path, accept, id, params) => {
    const router = new Router();
    const [before, after] = [noting(), noting()];
    router.param('id', before.note);
    declareBoth(router);
    router.param('id', after.note);
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get(path, accept)).text).toBe(`api/v1/books#show ${params}`);
    expect([before.values, after.values]).toEqual([[id], [id]]);
  });

  it.each(READINGS)('is called with it for %s of %s in a nested router, too', async (path, accept, id, params) => {
    const inner = new Router();
    const [own, shared, outermost] = [noting(), noting(), noting()];
    inner.param('id', own.note).param('id', shared.note);
    declareBoth(inner);
    const outer = new Router({ prefix: '/outer' });
    outer.param('id', shared.note);
    outer.use('/:tenant', inner.routes());
    outer.param('id', outermost.note);
    await using app = await ServedApp.start(appOf(outer));
    const { text } = await app.get(`/outer/t${path}`, accept);
    expect(text).toBe(`api/v1/books#show {"tenant":"t",${params.slice(1)}`);
    expect([own.values, shared.values, outermost.values]).toEqual([[id], [id], [id]]);
  });

  it('finds only the parameters of the selected path in the context', async () => {
    const router = new Router();
    const seen: unknown[] = [];
    router.param('id', (_id, ctx, next) => {
      seen.push({ ...ctx.params });
      return next();
    });
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => it.resources('posts', { only: [] }, () => it.resources('edit', { only: 'index' })));
      it.version(2, () => it.resources('posts', { only: 'edit' }));
    });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/posts/7/edit', acme(2))).text).toBe('api/v2/posts#edit {"id":"7"}');
    expect(seen).toEqual([{ id: '7' }]);
  });
});

describe('a handler of a parameter', () => {
  it('is not called for a path that the version does not select', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('id', note);
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => it.resources('posts', { only: 'edit' }));
      it.version(2, () => it.resources('posts', { only: [] }, () => it.resources('edit', { only: 'index' })));
    });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/posts/7/edit', acme(2))).text).toBe('api/v2/edit#index {"post_id":"7"}');
    expect(values).toEqual([]);
  });

  it('is called with the value of the path, when the prefix has a parameter of the same name', async () => {
    const router = new Router({ prefix: '/orgs/:id' });
    const { values, note } = noting();
    router.param('id', note);
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => it.resources('rules', { only: 'new' }));
      it.version(2, () => it.resources('rules', { only: 'show' }));
    });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/orgs/7/api/rules/new', acme(2))).text).toBe('api/v2/rules#show {"id":"new"}');
    expect(values).toEqual(['new']);
  });

  it('is called for each parameter that it is registered for', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('post_id', note).param('id', note);
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => it.resources('posts', { only: [] }, () => it.resources('replies', { only: 'show' })));
    });
    await using app = await ServedApp.start(appOf(router));
    await app.get('/api/posts/7/replies/9');
    expect(values).toEqual(['7', '9']);
  });

  it('is called once for a request that no version serves', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('id', note);
    declareBoth(router);
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/books/1', 'application/vnd.c+json')).status).toBe(406);
    expect((await app.send('DELETE', '/api/books/2', { Accept: B })).status).toBe(405);
    expect(values).toEqual(['1', '2']);
  });
});

describe('with routes of the router that are not versioned, a handler of a parameter', () => {
  it('is called with the value of the route that answers', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('id', note);
    declareBoth(router);
    router.post('/api/books/import', (ctx) => void (ctx.body = 'imported'));
    router.put('/api/books/:id', (ctx) => void (ctx.body = ctx.params.id));
    await using app = await ServedApp.start(appOf(router));
    expect((await app.send('POST', '/api/books/import')).text).toBe('imported');
    expect(values).toEqual([]);
    expect((await app.send('PUT', '/api/books/1.json')).text).toBe('1.json');
    expect(values).toEqual(['1.json']);
  });

  it('is called again for the action only if the value is another one', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('id', note);
    router.use('/api/books/:id', (_ctx, next) => next());
    router.delete('/api/books/:id', (ctx) => void (ctx.body = 'deleted'));
    declareBoth(router);
    await using app = await ServedApp.start(appOf(router));
    await app.get('/api/books/1');
    expect(values.splice(0)).toEqual(['1']);
    await app.get('/api/books/1.json', A);
    expect(values.splice(0)).toEqual(['1.json', '1']);
    await app.get('/api/books/1.json', B);
    expect(values).toEqual(['1.json']);
  });

  it('is called by a later router, which the request reaches after them', async () => {
    const [first, second] = [new Router(), new Router()];
    const { values, note } = noting();
    declareBoth(first);
    first.delete('/api/books/:id', (_ctx, next) => next());
    second.param('id', note);
    api(second, { vendorString: 'b', controllers: describing, formats: ['csv'] }, (it) => {
      it.version(1, () => it.resources('books', { only: 'destroy' }));
    });
    const koa = appOf(first);
    koa.use(second.routes());
    await using app = await ServedApp.start(koa);
    const { text } = await app.send('DELETE', '/api/books/1.csv', { Accept: B });
    expect([text, values]).toEqual(['api/v1/books#destroy {"id":"1","format":"csv"}', ['1']]);
  });
});
