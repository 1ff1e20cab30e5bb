import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Api, ApiOptions } from '../../packages/versioning/src';
import { Project } from './project';
import { acme, serve } from './serve-api';

const README = readFileSync(join(__dirname, '../../packages/versioning/README.md'), 'utf8');

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

/** Serves the declaration of the original with some options, and compares answers. */
function served(expected: Readonly<Record<string, string>>, options: Partial<ApiOptions> = {}) {
  return async () => {
    await using app = await serve(original, options);
    await app.expectAnswers(expected);
  };
}

/** Serves the declaration with options that the types do not have. */
async function serveUnknown(options: Readonly<Record<string, unknown>>): Promise<void> {
  await (await serve(original, options))[Symbol.asyncDispose]();
}

/** The route with and without the format. */
function route(request: string, action: string, id = false) {
  const [params, withFormat] = id ? ['{"id":"3"}', '{"id":"3","format":"json"}'] : ['{}', '{"format":"json"}'];
  return served({
    [`${request} 1`]: `api/v1/foo#${action} ${params}`,
    [`${request}.json 1`]: `api/v1/foo#${action} ${withFormat}`,
  });
}

/** One test for each row of the table, with real requests that carry the header. */
const TESTS: Readonly<Record<string, () => Promise<void>>> = {
  '`GET /<path>/<resource>` is `index`': route('GET /api/foo', 'index'),
  '`POST /<path>/<resource>` is `create`': route('POST /api/foo', 'create'),
  '`GET /<path>/<resource>/new` is `new`': route('GET /api/foo/new', 'new'),
  '`GET /<path>/<resource>/:id/edit` is `edit`': route('GET /api/foo/3/edit', 'edit', true),
  '`GET /<path>/<resource>/:id` is `show`': route('GET /api/foo/3', 'show', true),
  '`PUT /<path>/<resource>/:id` is `update`': route('PUT /api/foo/3', 'update', true),
  '`DELETE /<path>/<resource>/:id` is `destroy`': route('DELETE /api/foo/3', 'destroy', true),

  'The `Accept` header selects the version; URLs are the same in all versions': served({
    'GET /api/foo 1': 'api/v1/foo#index {}',
    'GET /api/foo 2': 'api/v2/foo#index {}',
    'GET /api/foo 3': 'api/v3/foo#index {}',
  }),
  'Without a version in the header, the default version applies': served(
    {
      'GET /api/foo': 'api/v2/foo#index {}',
      'GET /api/foo */*': 'api/v2/foo#index {}',
      'GET /api/foo application/vnd.acme+json': 'api/v2/foo#index {}',
    },
    { defaultVersion: 2 },
  ),
  'Without `defaultVersion`, the version that is declared first is the default': async () => {
    await using app = await serve((it) => [2, 1].forEach((version) => it.version(version, () => it.resources('foo'))));
    await app.expectAnswers({ 'GET /api/foo': 'api/v2/foo#index {}' });
  },
  'Controllers are in `<namespace>/v<n>/`, nested namespaces below': served({
    'GET /api/nests/nested/new 3': 'api/v3/nests/nested#new {}',
  }),
  'A version inherits all resources of a cache': served({
    'POST /api/authorizations 2': 'api/v2/authorizations#create {}',
    'GET /api/foo/1 2': 'api/v2/foo#show {"id":"1"}',
  }),
  'A cache may contain `inherit`, so later versions include earlier ones': served({
    'GET /api/foo 3': 'api/v3/foo#index {}',
    'GET /api/bar 3': 'api/v3/bar#index {}',
  }),
  'A resource that the version does not have is 404': served({
    'GET /api/bar 1': '404',
    'GET /api/nests/nested 2': '404',
  }),
  'With `only`, only the listed actions have routes': served({
    'POST /api/authorizations 1': 'api/v1/authorizations#create {}',
    'GET /api/authorizations 1': '405 POST',
    'GET /api/authorizations/1 1': '404',
  }),
  "`path` is the prefix of URLs and `''` removes it": async () => {
    await served({ 'GET /service/api/foo': 'api/v1/foo#index {}' }, { path: 'service/api' })();
    await served({ 'GET /foo': 'api/v1/foo#index {}', 'GET /api/foo': '404' }, { path: '' })();
  },
  "`namespace` is the folder of controllers and the prefix of route names, and `''` removes it": async () => {
    const names = { '': 'new_foo', shop: 'new_shop_foo', 'shop/eu': 'new_shop_eu_foo' };
    for (const [namespace, name] of Object.entries(names)) {
      await using app = await serve(original, { namespace, path: 'service' });
      const folder = namespace === '' ? '' : `${namespace}/`;
      await app.expectAnswers({
        'GET /service/foo': `${folder}v1/foo#index {}`,
        'GET /service/nests/nested 3': `${folder}v3/nests/nested#index {}`,
      });
      expect(app.router.url(name, {})).toBe('/service/foo/new');
    }
  },
  '`path` and `namespace` default to `api`, independently of each other': async () => {
    for (const path of [undefined, '', 'service', 'service/v9']) {
      for (const namespace of [undefined, '', 'shop', 'shop/eu']) {
        const [prefix, folder] = [path ?? 'api', namespace ?? 'api'].map((name) => (name === '' ? '' : `/${name}`));
        const expected = {
          [`GET ${prefix}/foo`]: `${folder}/v1/foo#index {}`.slice(1),
          [`GET ${prefix}/nests/nested 3`]: `${folder}/v3/nests/nested#index {}`.slice(1),
          ...(namespace !== undefined && namespace !== '' && { [`GET /${namespace}/foo`]: '404' }),
        };
        await served(expected, {
          ...(path !== undefined && { path }),
          ...(namespace !== undefined && { namespace }),
        })();
      }
    }
  },
  '`PATCH` is `update` only where `updateMethods` names it': async () => {
    await served({ 'PATCH /api/foo/3 1': '405 HEAD, GET, PUT, DELETE' })();
    await served(
      { 'PATCH /api/foo/3 1': 'api/v1/foo#update {"id":"3"}', 'PUT /api/foo/3 1': 'api/v1/foo#update {"id":"3"}' },
      { updateMethods: ['PUT', 'PATCH'] },
    )();
  },
  '`end`, `sensitive` and `strict` are passed on to the router': async () => {
    const lenient = { sensitive: false, strict: true, end: false };
    await served(
      { 'GET /API/FOO': 'api/v1/foo#index {}', 'GET /api/foo/3/x': 'api/v1/foo#show {"id":"3"}' },
      lenient,
    )();
    await served({ 'GET /api/foo/': '404' }, { strict: true })();
    await served({ 'GET /API/FOO': '404', 'GET /api/foo/': 'api/v1/foo#index {}', 'GET /api/foo/3/x': '404' })();
  },
  'With `host`, requests of other hosts are passed on': async () => {
    await served({ 'GET /api/foo': 'api/v1/foo#index {}' }, { host: '127.0.0.1' })();
    await served({ 'GET /api/foo': '404' }, { host: /example$/ })();
  },
  '`prefix` comes before `path`, and may have parameters': served(
    { 'GET /shops/7/service/foo': 'api/v1/foo#index {"shop":"7"}', 'GET /service/foo': '404' },
    { prefix: '/shops/:shop', path: 'service' },
  ),
  '`methods`, `exclusive` and unknown options are errors': async () => {
    for (const [option, message] of Object.entries({
      methods: 'new Router',
      exclusive: 'new Router',
      hots: "'host'",
    })) {
      await expect(serveUnknown({ [option]: true })).rejects.toThrow(message);
    }
  },
  "An unknown version, or another vendor's type alone, is 406 with the versions": async () => {
    await using app = await serve(original);
    for (const accept of [acme(9), 'application/vnd.other+json;version=1']) {
      const { status, text } = await app.get('/api/foo', accept);
      expect([status, JSON.parse(text)]).toMatchObject([406, { error: { versions: [1, 2, 3] } }]);
    }
  },
  'Routes have the names of Rails': async () => {
    await using app = await serve(original);
    const names = {
      api_foo_index: '/api/foo',
      new_api_foo: '/api/foo/new',
      edit_api_foo: '/api/foo/3/edit',
      api_foo: '/api/foo/3',
      api_authorizations: '/api/authorizations',
      api_nests_nested_index: '/api/nests/nested',
      new_api_nests_nested: '/api/nests/nested/new',
    };
    for (const [name, path] of Object.entries(names)) {
      expect(app.router.url(name, { id: 3 })).toBe(path);
      expect((await app.send('OPTIONS', path, { Accept: acme(3) })).status).toBe(200);
    }
    expect(app.router.url('api_foo', { id: 3, format: 'json' })).toBe('/api/foo/3.json');
  },
  'The next version extends the previous one, class by class': async () => {
    await using project = await Project.with({ 'v1/books-controller.mjs': true });
    await project.bump();
    await project.bump();
    expect(await project.controllers()).toEqual([1, 2, 3].map((version) => `v${version}/books-controller.mjs`));
    const answer = await fetch(`http://127.0.0.1:${await project.start(3, 'books')}/api/books/2`, {
      headers: { Accept: 'application/vnd.bookshop+json;version=3' },
    });
    expect(answer.headers.get('content-type')).toBe('application/vnd.bookshop+json; version=3');
    expect([answer.status, await answer.json()]).toEqual([200, { id: '2', title: 'Solaris' }]);
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

describe('a controller in a file', () => {
  const CLASS = "class Foo { index() {} show() { return 'shown'; } }";

  it('may have each form in which Node and compilers export a class', async () => {
    const forms = {
      'a-controller.js': `module.exports = ${CLASS};`,
      'b-controller.cjs': `module.exports = ${CLASS};`,
      'c-controller.cjs': `exports.Foo = ${CLASS}; exports.limit = 1; exports.make = () => 1;`,
      'd-controller.js': `exports.__esModule = true; exports.default = ${CLASS};`,
      'e-controller.mjs': `export default ${CLASS}`,
      'f-controller.mjs': `export ${CLASS}\nexport const limit = 1;`,
      'g-controller.ts': 'export default class Foo { show(): string { return "" } }',
      // A loader for TypeScript.
      'loader.cjs': `require.extensions['.ts'] = (it, file) => it._compile(${JSON.stringify(`module.exports = ${CLASS};`)}, file);`,
    };
    await using project = await Project.with(
      Object.fromEntries(Object.entries(forms).map(([at, text]) => [`v1/${at}`, text])),
    );
    const port = await project.start(1, 'a,b,c,d,e,f,g', '--require', './controllers/api/v1/loader.cjs');
    for (const name of 'abcdefg') {
      const answer = await fetch(`http://127.0.0.1:${port}/api/${name}/1`);
      expect([name, await answer.text()]).toEqual([name, 'shown']);
    }
    await using module = await Project.with({
      'v1/a-controller.js': `export default ${CLASS}`,
      'v1/package.json': '{"type":"module"}',
    });
    expect(await module.start(1, 'a')).toMatch(/^\d+$/);
  });
});
