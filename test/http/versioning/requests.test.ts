import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { type ControllerClass, api } from '../../../src/http/versioning';
import { ServedApp, acme, appOf, describing, serve } from './serve-api';

/** A function for the option `controllers` that returns the same class for every name. */
function only(controller: ControllerClass): () => ControllerClass {
  return () => controller;
}

describe('an answer', () => {
  it('has Vary: Accept whatever its status is', async () => {
    class Failing {
      index() {
        throw Object.assign(new Error('no'), { status: 409, expose: true, headers: { 'X-Reason': 'busy' } });
      }
      show(ctx: Context) {
        ctx.throw(410, 'gone');
      }
      edit() {
        return 'text';
      }
    }
    await using app = await serve(
      (it) => it.version(1, () => it.resources('foo', { only: ['index', 'show', 'edit'] })),
      {
        controllers: only(Failing),
      },
    );
    const answers = await Promise.all([
      app.get('/api/foo'),
      app.get('/api/foo/1'),
      app.get('/api/foo/1/edit'),
      app.get('/api/foo/1', acme(2)),
      app.send('DELETE', '/api/foo/1'),
      app.get('/api/foo/new.xyz/edit.xyz'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([409, 410, 200, 406, 405, 404]);
    expect(answers.map(({ headers }) => headers.vary)).toEqual(Array.from({ length: 6 }, () => 'Accept'));
    expect(answers[0].headers['x-reason']).toBe('busy');
  });

  it('keeps other fields in Vary', async () => {
    class Varying {
      index(ctx: Context) {
        ctx.vary('Origin');
        throw Object.assign(new Error('no'), { status: 400, headers: { vary: 'Origin, Accept' } });
      }
      show(ctx: Context) {
        ctx.vary('Origin');
        return {};
      }
    }
    await using app = await serve((it) => it.version(1, () => it.resources('foo', { only: ['index', 'show'] })), {
      controllers: only(Varying),
    });
    expect((await app.get('/api/foo')).headers.vary).toBe('Origin, Accept');
    expect((await app.get('/api/foo/1')).headers.vary).toBe('Accept, Origin');
  });

  it('in JSON has the media type of the vendor with the version', async () => {
    class Typed {
      index() {
        return { a: 1 };
      }
      show() {
        return 'text';
      }
      edit(ctx: Context) {
        ctx.type = 'application/problem+json';
        return '{}';
      }
      update(ctx: Context) {
        ctx.type = 'json';
        ctx.body = Buffer.from('[]');
      }
      destroy() {
        return null;
      }
    }
    await using app = await serve(
      (it) => it.version(4, () => it.resources('foo', { only: ['index', 'show', 'edit', 'update', 'destroy'] })),
      { controllers: only(Typed), vendorString: 'Acme' },
    );
    const { headers, text } = await app.get('/api/foo');
    expect([headers['content-type'], text]).toEqual(['application/vnd.acme+json; version=4', '{"a":1}']);
    expect((await app.get('/api/foo/1')).headers['content-type']).toBe('text/plain; charset=utf-8');
    expect((await app.get('/api/foo/1/edit')).headers['content-type']).toBe('application/problem+json');
    const updated = await app.send('PATCH', '/api/foo/1');
    expect([updated.headers['content-type'], updated.text]).toEqual(['application/vnd.acme+json; version=4', '[]']);
    const destroyed = await app.send('DELETE', '/api/foo/1');
    expect([destroyed.status, destroyed.headers['content-type']]).toEqual([204, undefined]);
  });

  it('is 404 when an action leaves the body unset', async () => {
    class Silent {
      index() {}
    }
    await using app = await serve((it) => it.version(1, () => it.resources('foo', { only: 'index' })), {
      controllers: only(Silent),
    });
    expect((await app.get('/api/foo')).status).toBe(404);
  });

  it('to HEAD is that to GET without the body', async () => {
    await using app = await serve((it) => it.version(1, () => it.resources('foo')));
    const { status, headers, text } = await app.send('HEAD', '/api/foo');
    expect([status, headers['content-length'], text]).toEqual([200, '19', '']);
  });

  it('to another method follows the methods of the version', async () => {
    await using app = await serve((it) => {
      it.version(1, () => it.resources('foo', { only: ['index', 'create', 'show'] }));
      it.version(2, () => it.resources('foo', { only: ['index', 'show', 'update'] }));
    });
    async function allowed(method: string, path: string, version: number) {
      const { status, headers } = await app.send(method, path, { Accept: acme(version) });
      return [status, headers.allow];
    }
    expect(await allowed('OPTIONS', '/api/foo', 1)).toEqual([200, 'HEAD, GET, POST']);
    expect(await allowed('OPTIONS', '/api/foo', 2)).toEqual([200, 'HEAD, GET']);
    expect(await allowed('POST', '/api/foo', 2)).toEqual([405, 'HEAD, GET']);
    expect(await allowed('DELETE', '/api/foo/1', 1)).toEqual([405, 'HEAD, GET']);
    expect(await allowed('DELETE', '/api/foo/1', 2)).toEqual([405, 'HEAD, GET, PUT, PATCH']);
    expect(await allowed('OPTIONS', '/api/foo/1/edit', 2)).toEqual([404, undefined]);
    expect((await allowed('TRACE', '/api/foo', 1))[0]).toBe(501);
  });
});

describe('an action', () => {
  it('runs on a new instance that has the context', async () => {
    const instances = new Set<object>();
    class Counting {
      readonly #path: string;
      constructor(ctx: Context) {
        this.#path = ctx.path;
      }
      index(ctx: Context) {
        instances.add(this);
        return { path: this.#path, version: ctx.state.apiVersion as unknown };
      }
    }
    await using app = await serve((it) => it.version(2, () => it.resources('foo', { only: 'index' })), {
      controllers: only(Counting),
    });
    expect((await app.get('/api/foo')).text).toBe('{"path":"/api/foo","version":2}');
    await app.get('/api/foo');
    expect(instances.size).toBe(2);
  });

  it('may be inherited, asynchronous, and pass the request on', async () => {
    class Base {
      async index(_ctx: Context, next: () => Promise<unknown>) {
        await next();
      }
    }
    class Derived extends Base {}
    const router = new Router();
    api(router, { vendorString: 'acme', controllers: only(Derived) }, (it) => {
      it.version(1, () => it.resources('foo', { only: 'index' }));
    });
    await using app = await ServedApp.start(appOf(router).use((ctx) => void (ctx.body = { next: true })));
    const { headers, text } = await app.get('/api/foo');
    expect([headers['content-type'], text]).toEqual(['application/vnd.acme+json; version=1', '{"next":true}']);
  });
});

describe('a path', () => {
  it('with a name comes before one with a parameter, whatever the versions declare first', async () => {
    await using app = await serve((it) => {
      it.version(1, () => it.resources('foo', { only: ['show', 'destroy'] }));
      it.version(2, () => {
        it.resources('foo', { only: ['show', 'new'] });
        it.namespace('foo', () => it.resources('special', { only: 'index' }));
      });
    });
    expect((await app.get('/api/foo/new', acme(1))).text).toBe('api/v1/foo#show {"id":"new"}');
    expect((await app.get('/api/foo/new', acme(2))).text).toBe('api/v2/foo#new {}');
    expect((await app.send('DELETE', '/api/foo/new', { Accept: acme(1) })).text).toBe(
      'api/v1/foo#destroy {"id":"new"}',
    );
    expect((await app.get('/api/foo/special', acme(1))).text).toBe('api/v1/foo#show {"id":"special"}');
    expect((await app.get('/api/foo/special', acme(2))).text).toBe('api/v2/foo/special#index {}');
  });

  it('may end with a known format; other dots belong to the parameter', async () => {
    await using app = await serve((it) => it.version(1, () => it.resources('foo')), { formats: ['json', 'csv'] });
    const texts: Readonly<Record<string, string>> = {
      '/api/foo.json': 'api/v1/foo#index {"format":"json"}',
      '/api/foo.csv': 'api/v1/foo#index {"format":"csv"}',
      '/api/foo/3.csv': 'api/v1/foo#show {"id":"3","format":"csv"}',
      '/api/foo/3.tar.json': 'api/v1/foo#show {"id":"3.tar","format":"json"}',
      '/api/foo/a.b': 'api/v1/foo#show {"id":"a.b"}',
      '/api/foo/x@example.com': 'api/v1/foo#show {"id":"x@example.com"}',
      '/api/foo/new.html': 'api/v1/foo#show {"id":"new.html"}',
      '/api/foo/new.json': 'api/v1/foo#new {"format":"json"}',
      '/api/foo/1.2.3.4/edit.json': 'api/v1/foo#edit {"id":"1.2.3.4","format":"json"}',
      '/api/foo/a%2Fb': 'api/v1/foo#show {"id":"a/b"}',
    };
    for (const [path, text] of Object.entries(texts)) expect([path, (await app.get(path)).text]).toEqual([path, text]);
    for (const path of ['/api/foo.xml', '/api/foo.', '/api/foo/1/edit.xml', '/api/foos']) {
      expect([path, (await app.get(path)).status]).toEqual([path, 404]);
    }
  });

  it('of a nested resource has the parameter of the enclosing one', async () => {
    const router = new Router();
    const options = { vendorString: 'acme', controllers: describing };
    api(router, options, (it) => {
      it.version(1, () => {
        it.namespace('admin', () =>
          it.resources('posts', { only: 'show' }, () => {
            it.resources('replies', () => it.namespace('meta', () => it.resources('rate-limits', { only: 'index' })));
          }),
        );
      });
    });
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/admin/posts/7/replies/9')).text).toBe(
      'api/v1/admin/replies#show {"post_id":"7","id":"9"}',
    );
    expect((await app.get('/api/admin/posts/7/replies/9/meta/rate-limits')).text).toBe(
      'api/v1/admin/meta/rate-limits#index {"post_id":"7","reply_id":"9"}',
    );
    expect(router.url('edit_api_admin_post_reply', { post_id: 7, id: 9 })).toBe('/api/admin/posts/7/replies/9/edit');
    expect(router.url('api_admin_post_reply_meta_rate_limits', { post_id: 7, reply_id: 9 })).toBe(
      '/api/admin/posts/7/replies/9/meta/rate-limits',
    );
  });
});

describe('a resource of which there is one', () => {
  it('has the routes of Rails, without index and without an id', async () => {
    const router = new Router();
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => {
        it.resource('user-profile', () => {
          it.resource('picture', { only: 'show' });
          it.resources('posts', { only: 'show' });
        });
      });
    });
    await using app = await ServedApp.start(appOf(router));
    const texts: Readonly<Record<string, string>> = {
      'GET /api/user-profile': 'api/v1/user-profile#show {}',
      'GET /api/user-profile.json': 'api/v1/user-profile#show {"format":"json"}',
      'POST /api/user-profile': 'api/v1/user-profile#create {}',
      'PUT /api/user-profile': 'api/v1/user-profile#update {}',
      'PATCH /api/user-profile': 'api/v1/user-profile#update {}',
      'DELETE /api/user-profile': 'api/v1/user-profile#destroy {}',
      'GET /api/user-profile/new': 'api/v1/user-profile#new {}',
      'GET /api/user-profile/edit': 'api/v1/user-profile#edit {}',
      'GET /api/user-profile/picture': 'api/v1/picture#show {}',
      'GET /api/user-profile/posts/7': 'api/v1/posts#show {"id":"7"}',
    };
    for (const [request, text] of Object.entries(texts)) {
      const [method, path] = request.split(' ') as [string, string];
      expect([request, (await app.send(method, path)).text]).toEqual([request, text]);
    }
    expect((await app.get('/api/user-profile/7')).status).toBe(404);
    expect(router.url('edit_api_user_profile', {})).toBe('/api/user-profile/edit');
    expect(router.url('api_user_profile_post', { id: 7 })).toBe('/api/user-profile/posts/7');
  });

  it('is kept by a cache', async () => {
    await using app = await serve((it) => {
      it.version(1, () => it.cache({ as: 'v1' }, () => it.resource('profile', { only: 'update' })));
      it.version(2, () => it.inherit({ from: 'v1' }));
    });
    expect((await app.send('PUT', '/api/profile', { Accept: acme(2) })).text).toBe('api/v2/profile#update {}');
  });
});

it('a declaration returns its routes', () => {
  const routes = api(new Router(), { vendorString: 'acme', controllers: describing }, (it) => {
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

describe('the parameters of an action', () => {
  it('are those of its own path, when paths of other versions match too', async () => {
    await using app = await serve((it) => {
      it.version(1, () => it.resources('posts', { only: 'edit' }));
      it.version(2, () => it.resources('posts', { only: [] }, () => it.resources('edit', { only: 'index' })));
    });
    expect((await app.get('/api/posts/7/edit', acme(1))).text).toBe('api/v1/posts#edit {"id":"7"}');
    expect((await app.get('/api/posts/7/edit', acme(2))).text).toBe('api/v2/edit#index {"post_id":"7"}');
  });
});

describe('a cache', () => {
  it('keeps the namespaces and resources inside it, and is declared again where it is inherited', async () => {
    await using app = await serve((it) => {
      it.version(1, () =>
        it.namespace('one', () =>
          it.cache({ as: 'kept' }, () => {
            it.resources('posts', { only: 'index' }, () => it.resources('replies', { only: 'index' }));
            it.namespace('inner', () => it.resources('foo', { only: 'index' }));
          }),
        ),
      );
      it.version(2, () => it.namespace('two', () => it.inherit({ from: 'kept' })));
    });
    expect((await app.get('/api/two/posts/1/replies', acme(2))).text).toBe('api/v2/two/replies#index {"post_id":"1"}');
    expect((await app.get('/api/two/inner/foo', acme(2))).text).toBe('api/v2/two/inner/foo#index {}');
    expect((await app.get('/api/one/inner/foo', acme(2))).status).toBe(404);
  });

  it('is replaced by a later one of the same name', async () => {
    await using app = await serve((it) => {
      it.version(1, () => {
        it.cache({ as: 'it' }, () => it.resources('foo', { only: 'index' }));
        it.cache({ as: 'it' }, () => it.resources('bar', { only: 'index' }));
      });
      it.version(2, () => it.inherit({ from: 'it' }));
    });
    expect((await app.get('/api/foo', acme(2))).status).toBe(404);
    expect((await app.get('/api/bar', acme(2))).status).toBe(200);
  });
});

describe('several blocks', () => {
  it('of different vendors may have the same paths', async () => {
    const router = new Router();
    for (const vendorString of ['acme', 'other']) {
      api(router, { vendorString, controllers: (name) => describing(`${vendorString}:${name}`) }, (it) => {
        it.version(1, () => it.resources('foo', { only: ['index', vendorString === 'acme' ? 'show' : 'destroy'] }));
      });
    }
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/foo')).text).toBe('acme:api/v1/foo#index {}');
    expect((await app.get('/api/foo', 'application/vnd.other+json')).text).toBe('other:api/v1/foo#index {}');
    expect((await app.send('DELETE', '/api/foo/1')).text).toBe('other:api/v1/foo#destroy {"id":"1"}');
    expect((await app.send('PUT', '/api/foo/1')).headers.allow).toBe('HEAD, GET, DELETE');
    const none = await app.get('/api/foo', 'application/vnd.third+json');
    expect([none.status, (JSON.parse(none.text) as { error: { types: unknown } }).error.types]).toEqual([
      406,
      ['application/vnd.acme+json; version=1', 'application/vnd.other+json; version=1'],
    ]);
  });
});

describe('with other routes of the router', () => {
  it('a path may have methods that are not versioned', async () => {
    const router = new Router();
    router.get('/api/foo/before', (ctx) => void (ctx.body = 'before'));
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => it.resources('foo', { only: 'show' }));
    });
    router.post('/api/foo/import', (ctx) => void (ctx.body = 'imported'));
    await using app = await ServedApp.start(appOf(router));
    expect((await app.get('/api/foo/before')).text).toBe('before');
    expect((await app.get('/api/foo/import')).text).toBe('api/v1/foo#show {"id":"import"}');
    expect((await app.send('POST', '/api/foo/import')).text).toBe('imported');
    expect((await app.send('PUT', '/api/foo/import')).headers.allow).toBe('HEAD, GET, POST');
  });

  it('middleware and parameters of the router apply', async () => {
    const router = new Router();
    router.use(async (ctx, next) => {
      ctx.set('X-Middleware', 'yes');
      await next();
    });
    router.param('id', async (id, ctx, next) => {
      ctx.set('X-Id', id);
      await next();
    });
    api(router, { vendorString: 'acme', controllers: describing }, (it) => it.version(1, () => it.resources('foo')));
    await using app = await ServedApp.start(appOf(router));
    const { headers } = await app.get('/api/foo/3');
    expect([headers['x-middleware'], headers['x-id']]).toEqual(['yes', '3']);
  });

  it('a router may have a prefix, or be nested in another', async () => {
    const inner = new Router({ prefix: '/inner' });
    api(inner, { vendorString: 'acme', controllers: describing }, (it) => it.version(1, () => it.resources('foo')));
    const outer = new Router({ prefix: '/outer' });
    outer.use('/:tenant', inner.routes());
    await using app = await ServedApp.start(appOf(outer));
    expect((await app.get('/outer/t1/inner/api/foo/3')).text).toBe('api/v1/foo#show {"tenant":"t1","id":"3"}');
    expect((await app.get('/inner/api/foo/3')).status).toBe(404);
    expect(outer.url('api_foo', { tenant: 't1', id: 3 })).toBe('/outer/t1/inner/api/foo/3');
    expect((await app.send('DELETE', '/outer/t1/inner/api/foo')).status).toBe(405);
  });

  it('a router may be nested in another after it has answered', async () => {
    const inner = new Router();
    api(inner, { vendorString: 'acme', controllers: describing }, (it) => it.version(1, () => it.resources('foo')));
    await using before = await ServedApp.start(appOf(inner));
    expect((await before.get('/api/foo')).status).toBe(200);
    const outer = new Router({ prefix: '/outer' });
    outer.use(inner.routes());
    await using after = await ServedApp.start(appOf(outer));
    expect((await after.get('/outer/api/foo')).status).toBe(200);
    expect((await before.get('/api/foo')).status).toBe(200);
  });

  it('allowedMethods before the routes changes nothing', async () => {
    const router = new Router();
    api(router, { vendorString: 'acme', controllers: describing }, (it) => {
      it.version(1, () => it.resources('foo', { only: 'index' }));
      it.version(2, () => it.resources('bar', { only: 'index' }));
    });
    const koa = new Koa();
    koa.use(router.allowedMethods());
    koa.use(router.routes());
    await using app = await ServedApp.start(koa);
    expect((await app.send('OPTIONS', '/api/bar', { Accept: acme(1) })).status).toBe(404);
    expect((await app.send('OPTIONS', '/api/bar', { Accept: acme(2) })).headers.allow).toBe('HEAD, GET');
  });
});
