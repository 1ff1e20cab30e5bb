import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Router } from '@koa/router';
import { type Api, api } from '../../../src/http/versioning';
import { ExampleCopy } from './example-copy';
import { ServedApp, acme, appOf, describing, serve } from './serve-api';

const README = readFileSync(join(__dirname, '../../../src/http/versioning/README.md'), 'utf8');

/** The first cells of the table under "Conformance". */
function rowsOfReadme(): readonly string[] {
  const section = README.slice(README.indexOf('## Conformance')).split(/\n## /)[0]!;
  return section
    .split('\n')
    .flatMap((line) => /^\| (.+?) +\|/.exec(line)?.[1] ?? [])
    .filter((cell) => cell !== 'Rule' && !cell.startsWith('--'));
}

/** The declaration of the original's documentation, with one resource that only version 3 has. */
function original(it: Api): void {
  it.version(1, () => {
    it.cache({ as: 'v1' }, () => {
      it.resources('authorizations', { only: ['create'] });
      it.resources('foo');
    });
  });
  it.version(2, () => {
    it.cache({ as: 'v2' }, () => {
      it.inherit({ from: 'v1' });
      it.resources('bar');
    });
  });
  it.version(3, () => {
    it.inherit({ from: ['v2'] });
    it.namespace('nests', () => it.resources('nested'));
  });
}

function route(method: string, path: string, answer: string): () => Promise<void> {
  return async () => {
    await using app = await serve(original);
    for (const format of ['', '.json']) {
      const { status, text } = await app.send(method, path + format, { Accept: acme(1) });
      const params = answer.includes('{') ? (JSON.parse(answer.slice(answer.indexOf('{'))) as object) : {};
      const expected = { ...params, ...(format !== '' && { format: 'json' }) };
      expect([status, text]).toEqual([200, `${answer.split(' ')[0]} ${JSON.stringify(expected)}`]);
    }
  };
}

/** One test for each row of the table, with real requests that carry the header. */
const TESTS: Readonly<Record<string, () => Promise<void>>> = {
  '`GET /<path>/<resource>` is `index`': route('GET', '/api/foo', 'api/v1/foo#index'),
  '`POST /<path>/<resource>` is `create`': route('POST', '/api/foo', 'api/v1/foo#create'),
  '`GET /<path>/<resource>/new` is `new`': route('GET', '/api/foo/new', 'api/v1/foo#new'),
  '`GET /<path>/<resource>/:id/edit` is `edit`': route('GET', '/api/foo/3/edit', 'api/v1/foo#edit {"id":"3"}'),
  '`GET /<path>/<resource>/:id` is `show`': route('GET', '/api/foo/3', 'api/v1/foo#show {"id":"3"}'),
  '`PUT /<path>/<resource>/:id` is `update`': route('PUT', '/api/foo/3', 'api/v1/foo#update {"id":"3"}'),
  '`PATCH /<path>/<resource>/:id` is `update`': route('PATCH', '/api/foo/3', 'api/v1/foo#update {"id":"3"}'),
  '`DELETE /<path>/<resource>/:id` is `destroy`': route('DELETE', '/api/foo/3', 'api/v1/foo#destroy {"id":"3"}'),

  'The `Accept` header selects the version; URLs are the same in all versions': async () => {
    await using app = await serve(original);
    for (const version of [1, 2, 3]) {
      expect((await app.get('/api/foo', acme(version))).text).toBe(`api/v${version}/foo#index {}`);
    }
  },
  'Without a version in the header, the default version applies': async () => {
    await using app = await serve(original, { defaultVersion: 2 });
    for (const accept of [undefined, '', '*/*', 'text/html', 'application/json', 'application/vnd.acme+json']) {
      expect((await app.get('/api/foo', accept)).text).toBe('api/v2/foo#index {}');
    }
  },
  'Without `defaultVersion`, the version that is declared first is the default': async () => {
    await using app = await serve((it) => {
      it.version(2, () => it.resources('foo'));
      it.version(1, () => it.resources('foo'));
    });
    expect((await app.get('/api/foo')).text).toBe('api/v2/foo#index {}');
  },
  'Controllers are in `<namespace>/v<n>/`, nested namespaces below': async () => {
    await using app = await serve(original);
    expect((await app.get('/api/nests/nested/new', acme(3))).text).toBe('api/v3/nests/nested#new {}');
  },
  'A version inherits all resources of a cache': async () => {
    await using app = await serve(original);
    expect((await app.send('POST', '/api/authorizations', { Accept: acme(2) })).text).toBe(
      'api/v2/authorizations#create {}',
    );
    expect((await app.get('/api/foo/1', acme(2))).text).toBe('api/v2/foo#show {"id":"1"}');
  },
  'A cache may contain `inherit`, so later versions include earlier ones': async () => {
    await using app = await serve(original);
    expect((await app.get('/api/foo', acme(3))).text).toBe('api/v3/foo#index {}');
    expect((await app.get('/api/bar', acme(3))).text).toBe('api/v3/bar#index {}');
  },
  'A resource that the version does not have is 404': async () => {
    await using app = await serve(original);
    expect((await app.get('/api/bar', acme(1))).status).toBe(404);
    expect((await app.get('/api/nests/nested', acme(2))).status).toBe(404);
  },
  'With `only`, only the listed actions have routes': async () => {
    await using app = await serve(original);
    expect((await app.send('POST', '/api/authorizations', { Accept: acme(1) })).status).toBe(200);
    expect((await app.get('/api/authorizations', acme(1))).status).toBe(405);
    expect((await app.get('/api/authorizations/1', acme(1))).status).toBe(404);
  },
  "`path` is the prefix of URLs and `''` removes it": async () => {
    await using other = await serve(original, { path: 'service/api' });
    expect((await other.get('/service/api/foo')).text).toBe('api/v1/foo#index {}');
    await using without = await serve(original, { path: '' });
    expect((await without.get('/foo')).text).toBe('api/v1/foo#index {}');
    expect((await without.get('/api/foo')).status).toBe(404);
  },
  "`namespace` is the folder of controllers, and the prefix of URLs unless `path` is set; `''` removes it":
    async () => {
      await using other = await serve(original, { namespace: 'shop' });
      expect((await other.get('/shop/foo')).text).toBe('shop/v1/foo#index {}');
      await using without = await serve(original, { namespace: '' });
      expect((await without.get('/foo')).text).toBe('v1/foo#index {}');
      await using pathOnly = await serve(original, { namespace: '', path: 'api' });
      expect((await pathOnly.get('/api/foo')).text).toBe('v1/foo#index {}');
    },
  'Options of the router are passed on': async () => {
    await using lenient = await serve(original, { sensitive: false, strict: true });
    expect((await lenient.get('/API/FOO')).status).toBe(200);
    expect((await lenient.get('/api/foo/')).status).toBe(404);
    await using byDefault = await serve(original);
    expect((await byDefault.get('/API/FOO')).status).toBe(404);
    expect((await byDefault.get('/api/foo/')).status).toBe(200);
  },
  "An unknown version, or another vendor's type alone, is 406 with the versions": async () => {
    await using app = await serve(original);
    for (const accept of [acme(9), 'application/vnd.other+json;version=1']) {
      const { status, text } = await app.get('/api/foo', accept);
      expect([status, (JSON.parse(text) as { error: { versions: unknown } }).error.versions]).toEqual([406, [1, 2, 3]]);
    }
  },
  'Routes have the names of Rails': async () => {
    const router = new Router();
    api(router, { vendorString: 'acme', controllers: describing }, original);
    const names = {
      api_foo_index: '/api/foo',
      new_api_foo: '/api/foo/new',
      edit_api_foo: '/api/foo/3/edit',
      api_foo: '/api/foo/3',
      api_authorizations: '/api/authorizations',
      api_nests_nested_index: '/api/nests/nested',
      new_api_nests_nested: '/api/nests/nested/new',
    };
    await using app = await ServedApp.start(appOf(router));
    for (const [name, path] of Object.entries(names)) {
      expect(router.url(name, { id: 3 })).toBe(path);
      expect((await app.send('OPTIONS', path, { Accept: acme(3) })).status).toBe(200);
    }
    expect(router.url('api_foo', { id: 3, format: 'json' })).toBe('/api/foo/3.json');
  },
  'The next version extends the previous one, class by class': async () => {
    await using copy = await ExampleCopy.make();
    await copy.bump();
    await copy.bump();
    expect(await copy.files()).toEqual([1, 2, 3].map((version) => `api/v${version}/books-controller.mjs`));
    await using app = await copy.start(3);
    expect(await app.get('/api/books/2', 3)).toEqual({
      status: 200,
      type: 'application/vnd.bookshop+json; version=3',
      body: { id: '2', title: 'Solaris' },
    });
  },
};

describe('the rules of the original extension', () => {
  it.each(Object.entries(TESTS))('%s', async (_rule, test) => {
    expect.hasAssertions();
    await test();
  });

  it('are the rows of the table in the README', () => {
    expect(rowsOfReadme()).toEqual(Object.keys(TESTS));
  });
});
