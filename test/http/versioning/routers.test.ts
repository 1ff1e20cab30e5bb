import { Router } from '@koa/router';
import Koa, { type Next } from 'koa';
import { type Api, type DeclaredRoute, api } from '../../../src/http/versioning';
import { ServedApp, appOf, declareOn, describing } from './serve-api';

/** A router with a block, and its application. */
function routed(declare: (it: Api) => void, router = new Router()) {
  return { router, routes: declareOn(router, declare), start: () => ServedApp.start(appOf(router)) };
}

function foo(it: Api): void {
  it.version(1, () => it.resources('foo'));
}

describe('with other routes of the router', () => {
  it('a path may have methods that are not versioned', async () => {
    const router = new Router();
    router.get('/api/foo/before', (ctx) => void (ctx.body = 'before'));
    const { start } = routed((it) => it.version(1, () => it.resources('foo', { only: 'show' })), router);
    router.post('/api/foo/import', (ctx) => void (ctx.body = 'imported'));
    await using app = await start();
    await app.expectAnswers({
      'GET /api/foo/before': 'before',
      'GET /api/foo/import': 'api/v1/foo#show {"id":"import"}',
      'POST /api/foo/import': 'imported',
      'PUT /api/foo/import': '405 HEAD, GET, POST',
    });
  });

  it('middleware of the router applies', async () => {
    const router = new Router();
    router.use((ctx, next) => (ctx.set('X-Middleware', 'yes'), next()));
    await using app = await routed(foo, router).start();
    expect((await app.get('/api/foo/3')).headers['x-middleware']).toBe('yes');
  });

  it('a router may have a prefix, or be nested in another, also after it has answered', async () => {
    const { router: inner, start } = routed(foo, new Router({ prefix: '/inner' }));
    await using before = await start();
    await before.expectAnswers({ 'GET /inner/api/foo': 'api/v1/foo#index {}' });
    const outer = new Router({ prefix: '/outer' });
    outer.use('/:tenant', inner.routes());
    await using app = await ServedApp.start(appOf(outer));
    await app.expectAnswers({
      'GET /outer/t1/inner/api/foo/3': 'api/v1/foo#show {"tenant":"t1","id":"3"}',
      'GET /inner/api/foo/3': '404',
      'DELETE /outer/t1/inner/api/foo': '405 HEAD, GET, POST',
    });
    expect(outer.url('api_foo', { tenant: 't1', id: 3 })).toBe('/outer/t1/inner/api/foo/3');
    await before.expectAnswers({ 'GET /inner/api/foo': 'api/v1/foo#index {}' });
  });

  it('a prefix may be optional, or have a parameter of the same name as a path', async () => {
    await using app = await routed(foo, new Router({ prefix: '{/:lang}' })).start();
    await app.expectAnswers({
      'GET /api/foo/3': 'api/v1/foo#show {"id":"3"}',
      'GET /en/api/foo/3': 'api/v1/foo#show {"lang":"en","id":"3"}',
      'GET /en/us/api/foo/3': '404',
    });
    const router = new Router({ prefix: '/orgs/:id' });
    const { values, note } = noting();
    router.param('id', note);
    const { start } = routed((it) => {
      it.version(1, () => it.resources('rules', { only: 'new' }));
      it.version(2, () => it.resources('rules', { only: ['show', 'edit'] }));
      it.version(3, () => it.resources('rules', { only: [] }, () => it.resources('edit', { only: 'index' })));
    }, router);
    await using orgs = await start();
    await orgs.expectAnswers({
      'GET /orgs/7/api/rules/new': 'api/v1/rules#new {"id":"7"}',
      'GET /orgs/7/api/rules/new 2': 'api/v2/rules#show {"id":"new"}',
      'GET /orgs/7/api/rules/3/edit 3': 'api/v3/edit#index {"id":"7","rule_id":"3"}',
    });
    expect(values).toEqual(['7', 'new', '7']);
  });

  it('allowedMethods before the routes changes nothing', async () => {
    const { router } = routed((it) => {
      it.version(1, () => it.resources('foo', { only: 'index' }));
      it.version(2, () => it.resources('bar', { only: 'index' }));
    });
    const koa = new Koa();
    koa.use(router.allowedMethods()).use(router.routes());
    await using app = await ServedApp.start(koa);
    await app.expectAnswers({ 'OPTIONS /api/bar 1': '404', 'OPTIONS /api/bar 2': '200 HEAD, GET' });
  });
});

/** A handler of parameters that notes the values that it is called with. */
function noting() {
  const values: string[] = [];
  function note(value: string, _ctx: unknown, next: Next) {
    values.push(value);
    return next();
  }
  return { values, note };
}

/** Two blocks with the same paths: the vendor a has the format json, the vendor b has xml. */
function declareBoth(router: Router): void {
  for (const [vendorString, format] of [
    ['a', 'json'],
    ['b', 'xml'],
  ] as const) {
    api(router, { vendorString, controllers: describing, formats: [format] }, (it) => {
      it.version(1, () => it.resources('books', { only: ['show', 'edit'] }));
    });
  }
}

const A = 'application/vnd.a+json';
const B = 'application/vnd.b+json';

/** The path of a book, the header of the request, the parameter that handlers must see, and those of the action. */
const READINGS: readonly [path: string, accept: string, id: string, params: string][] = [
  ['/api/books/1.xml', A, '1.xml', '{"id":"1.xml"}'],
  ['/api/books/1.json', A, '1', '{"id":"1","format":"json"}'],
  ['/api/books/1.xml', B, '1', '{"id":"1","format":"xml"}'],
  ['/api/books/1.json', B, '1.json', '{"id":"1.json"}'],
  ['/api/books/a%2Fb.c%20d', A, 'a/b.c d', '{"id":"a/b.c d"}'],
];

describe('a handler of a parameter', () => {
  it.each(READINGS)('is called for %s of %s with the value that the action gets', async (path, accept, id, params) => {
    const inner = new Router();
    const [before, shared, after, outermost] = [noting(), noting(), noting(), noting()];
    inner.param('id', before.note).param('id', shared.note);
    declareBoth(inner);
    inner.param('id', after.note);
    const request = `GET ${path} ${accept}`;
    await using app = await ServedApp.start(appOf(inner));
    await app.expectAnswers({ [request]: `api/v1/books#show ${params}` });
    expect([before, shared, after].map(({ values }) => values.splice(0))).toEqual([[id], [id], [id]]);
    const outer = new Router({ prefix: '/outer' });
    outer.param('id', shared.note);
    outer.use('/:tenant', inner.routes());
    outer.param('id', outermost.note);
    await using nested = await ServedApp.start(appOf(outer));
    const answer = `api/v1/books#show {"tenant":"t",${params.slice(1)}`;
    await nested.expectAnswers({ [request.replace('/', '/outer/t/')]: answer });
    expect([before, shared, after, outermost].map(({ values }) => values)).toEqual([[id], [id], [id], [id]]);
  });

  it('is called only for the selected path, whose parameters alone are in the context', async () => {
    const router = new Router();
    const seen: unknown[] = [];
    for (const name of ['post_id', 'id'])
      router.param(name, (_id, ctx, next) => (seen.push({ ...ctx.params }), next()));
    const { start } = routed((it) => {
      it.version(1, () => it.resources('posts', { only: [] }, () => it.resources('edit', { only: 'index' })));
      it.version(2, () => it.resources('posts', { only: 'edit' }));
    }, router);
    await using app = await start();
    await app.expectAnswers({
      'GET /api/posts/7/edit 2': 'api/v2/posts#edit {"id":"7"}',
      'GET /api/posts/8/edit 1': 'api/v1/edit#index {"post_id":"8"}',
    });
    expect(seen).toEqual([{ id: '7' }, { post_id: '8' }]);
  });

  it('is called once for a request that no version serves, and with the value of a route that is not versioned', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('id', note);
    declareBoth(router);
    router.post('/api/books/import', (ctx) => void (ctx.body = 'imported'));
    router.put('/api/books/:id', (ctx) => void (ctx.body = ctx.params.id));
    await using app = await ServedApp.start(appOf(router));
    await app.expectAnswers({
      'GET /api/books/1 application/vnd.c+json': '406',
      [`DELETE /api/books/2 ${B}`]: '405 HEAD, GET, PUT',
      'POST /api/books/import': 'imported',
      'PUT /api/books/1.json': '1.json',
    });
    expect(values).toEqual(['1', '2', '1.json']);
  });

  it('is called again for the action only if the value is another one', async () => {
    const router = new Router();
    const { values, note } = noting();
    router.param('id', note);
    router.use('/api/books/:id', (_ctx, next) => next());
    router.delete('/api/books/:id', (ctx) => void (ctx.body = 'deleted'));
    declareBoth(router);
    await using app = await ServedApp.start(appOf(router));
    for (const [path, accept] of [
      ['/api/books/1', A],
      ['/api/books/2.json', A],
      ['/api/books/3.json', B],
    ] as const) {
      await app.get(path, accept);
    }
    expect(values).toEqual(['1', '2.json', '2', '3.json']);
  });

  it('is called by a later router, which the request reaches after one that passes it on', async () => {
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
    await app.expectAnswers({ [`DELETE /api/books/1.csv ${B}`]: 'api/v1/books#destroy {"id":"1","format":"csv"}' });
    expect(values).toEqual(['1']);
  });
});

/** A router with a handler of the parameter `id` that throws, registered before or after the `api` block. */
function routerThrowing(thrown: unknown, when: 'before' | 'after' = 'before'): Router {
  const router = new Router();
  function refuse(): never {
    throw thrown;
  }
  if (when === 'before') router.param('id', refuse);
  declareOn(router, foo);
  if (when === 'after') router.param('id', refuse);
  return router;
}

function conflict(): Error {
  return Object.assign(new Error('no'), { status: 409, expose: true, headers: { Vary: 'Origin' } });
}

describe('an error of a handler of a parameter', () => {
  it.each(['before', 'after'] as const)('registered %s the block has its own status and Vary: Accept', async (when) => {
    const outer = new Router();
    outer.use('/:tenant', routerThrowing(conflict(), when).routes());
    await using app = await ServedApp.start(appOf(routerThrowing(conflict(), when)));
    await using nested = await ServedApp.start(appOf(outer));
    for (const answer of [
      await app.get('/api/foo/1'),
      await app.get('/api/foo/1', 'application/vnd.other+json'),
      await nested.get('/t/api/foo/1'),
    ]) {
      expect([answer.status, answer.headers.vary, answer.text]).toEqual([409, 'Origin, Accept', 'no']);
    }
  });

  it('reaches the middleware of the application as it is, and is reported as Koa does', async () => {
    const thrown = { code: 'busy' };
    const koa = new Koa();
    const caught: unknown[] = [];
    const reported: Error[] = [];
    koa.on('error', (error: Error) => reported.push(error));
    koa.use(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        caught.push(error);
        if (ctx.query.later !== undefined) ctx.throw(503, 'later');
        throw error;
      }
    });
    koa.use(routerThrowing(thrown).routes());
    await using app = await ServedApp.start(koa);
    const { status, headers } = await app.get('/api/foo/1');
    expect([status, headers.vary, caught]).toEqual([500, 'Accept', [thrown]]);
    const { message, cause } = reported[0]!;
    expect([message, cause]).toEqual(['non-error thrown: {"code":"busy"}', thrown]);
    await app.expectAnswers({ 'GET /api/foo/1?later': '503' });
  });

  it('that answers instead of throwing has Vary: Accept, too', async () => {
    const router = new Router();
    router.param('id', (_id, ctx) => void (ctx.status = 410));
    await using app = await routed(foo, router).start();
    const { status, headers } = await app.get('/api/foo/1');
    expect([status, headers.vary]).toEqual([410, 'Accept']);
  });
});

/** The name of each path. */
function namesOf(routes: readonly DeclaredRoute[]): Readonly<Record<string, string>> {
  return Object.fromEntries(routes.map(({ path, name }) => [path, name]));
}

describe('a route name that two paths would have', () => {
  it('is that of the first path, as in Rails, and the other path has none', async () => {
    const { router, routes, start } = routed((it) => {
      it.version(1, () => {
        it.resources('users', { only: ['show', 'edit'] });
        it.resource('user', { only: ['show', 'edit'] });
        it.namespace('a', () => it.resources('books', { only: 'index' }));
        it.resources('a-books', { only: 'index' });
      });
    });
    expect(namesOf(routes)).toEqual({
      '/api/users/:id': 'api_user',
      '/api/users/:id/edit': 'edit_api_user',
      '/api/user': '',
      '/api/user/edit': '',
      '/api/a/books': 'api_a_books',
      '/api/a-books': '',
    });
    await using app = await start();
    await app.expectAnswers({
      'GET /api/users/3': 'api/v1/users#show {"id":"3"}',
      'GET /api/user': 'api/v1/user#show {}',
      'GET /api/user/edit': 'api/v1/user#edit {}',
      'GET /api/a-books': 'api/v1/a-books#index {}',
    });
    expect(router.url('api_user', { id: 3 })).toBe('/api/users/3');
  });

  it('is that of the first path also when a later version declares the other, unless that has a name of its own', async () => {
    const { routes, start } = routed((it) => {
      it.version(1, () => {
        it.cache({ as: 'v1' }, () => it.resource('user', { only: 'show' }));
        it.resources('news', { only: ['index', 'show'] });
      });
      it.version(2, () => {
        it.inherit({ from: 'v1' });
        it.resources('users', { only: 'show' });
        it.resource('news', { only: 'show' });
      });
    });
    expect(namesOf(routes)).toEqual({
      '/api/user': 'api_user',
      '/api/users/:id': '',
      '/api/news': 'api_news_index',
      '/api/news/:id': 'api_news',
    });
    await using app = await start();
    await app.expectAnswers({
      'GET /api/users/3 2': 'api/v2/users#show {"id":"3"}',
      'GET /api/news 2': 'api/v2/news#show {}',
    });
  });
});

it('a declaration returns its routes', () => {
  const { routes } = routed((it) => {
    it.version(1, () => it.resources('posts', { only: ['index', 'update'] }));
    it.version(3, () => it.resource('profile', { only: 'show' }));
  });
  expect(routes.toSorted((one, other) => (one.method < other.method ? -1 : 1))).toEqual([
    expect.objectContaining({ version: 1, method: 'GET', path: '/api/posts', name: 'api_posts', action: 'index' }),
    { version: 3, method: 'GET', path: '/api/profile', name: 'api_profile', action: 'show' },
    { version: 1, method: 'PATCH', path: '/api/posts/:id', name: 'api_post', action: 'update' },
    { version: 1, method: 'PUT', path: '/api/posts/:id', name: 'api_post', action: 'update' },
  ]);
});
