import { join } from 'node:path';
import { Router } from '@koa/router';
import { type Api, type ApiOptions, DeclarationError, api } from '../../../src/http/versioning';
import { describing } from './serve-api';

const FIXTURES = join(__dirname, 'fixtures');

interface Wrong {
  readonly options?: Readonly<Record<string, unknown>>;
  readonly declare?: (it: Api) => void;
  /** The whole message, with the folder of the fixtures as `<fixtures>`. */
  readonly message: string;
}

function foo(it: Api): void {
  it.version(1, () => it.resources('foo'));
}

/** Declarations that JavaScript allows and TypeScript does not. */
function untyped(it: Api): Readonly<Record<string, (...values: unknown[]) => void>> {
  return it as never;
}

const WRONG: Readonly<Record<string, Wrong>> = {
  'no vendor string': {
    options: { vendorString: undefined },
    message: "api: vendorString must be the vendor part of a media type, for example 'myvendor', not undefined",
  },
  'a vendor string that is no part of a media type': {
    options: { vendorString: 'a b' },
    message: "api: vendorString must be the vendor part of a media type, for example 'myvendor', not 'a b'",
  },
  'an unknown option': {
    options: { vendor: 'acme' },
    message:
      "api: unknown option 'vendor'; the options are vendorString, defaultVersion, path, namespace, controllers, formats, " +
      'sensitive, strict',
  },
  'a default version that is not a positive whole number': {
    options: { defaultVersion: '1' },
    message: "api: defaultVersion must be a positive whole number, not '1'",
  },
  'a default version that is not declared': {
    options: { defaultVersion: 2 },
    message: 'api: defaultVersion is 2, which is not declared',
  },
  'a path with a parameter': {
    options: { path: ':tenant/api' },
    message:
      "api: path must be names of letters, digits, '-', '_', '.' and '~', separated by '/', not ':tenant/api'; " +
      'parameters belong to the prefix of the router',
  },
  'a namespace that leaves the folder': {
    options: { namespace: '../api' },
    message:
      "api: namespace must be names of letters, digits, '-', '_', '.' and '~', separated by '/', not '../api'; " +
      'parameters belong to the prefix of the router',
  },
  'no controllers': {
    options: { controllers: undefined },
    message: 'api: controllers must be a folder or a function that returns a class, not undefined',
  },
  'formats with a dot': {
    options: { formats: ['.json'] },
    message: "api: formats must be a list of file extensions without a dot, not [ '.json' ]",
  },
  'no version': { declare: () => undefined, message: 'api: no version is declared' },
  'a version that is not a whole number': {
    declare: (it) => it.version(1.5, () => undefined),
    message: 'api: a version must be a positive whole number, not 1.5',
  },
  'version 0': {
    declare: (it) => it.version(0, () => undefined),
    message: 'api: a version must be a positive whole number, not 0',
  },
  'a version that is declared twice': {
    declare: (it) => {
      foo(it);
      foo(it);
    },
    message: 'api: version 1 is declared twice',
  },
  'a version in a version': {
    declare: (it) => it.version(1, () => it.version(2, () => undefined)),
    message: 'api > version 1: version 2 is inside another version',
  },
  'a resource outside of versions': {
    declare: (it) => it.resources('foo'),
    message: 'api: resources must be inside a version',
  },
  'a version without a function': {
    declare: (it) => untyped(it).version!(1),
    message: 'api > version 1: a function is required that declares what is inside',
  },
  'an asynchronous function': {
    declare: (it) => untyped(it).version!(1, () => Promise.resolve()),
    message: 'api > version 1: the function must be synchronous: routes are registered when it returns',
  },
  'an unknown cache, when there is none': {
    declare: (it) => it.version(1, () => it.inherit({ from: 'v1' })),
    message: "api > version 1: there is no cache 'v1'; none is declared before",
  },
  'an unknown cache in a list': {
    declare: (it) =>
      it.version(1, () => {
        it.cache({ as: 'one' }, () => it.resources('foo'));
        it.namespace('other', () => it.inherit({ from: ['one', 'two'] }));
      }),
    message: "api > version 1 > namespace 'other': there is no cache 'two'; declared before are 'one'",
  },
  'a cache without a name': {
    declare: (it) => it.version(1, () => untyped(it).cache!({}, () => undefined)),
    message: "api > version 1: cache requires a name: { as: 'name' }",
  },
  'an unknown action': {
    declare: (it) => it.version(1, () => untyped(it).resources!('foo', { only: ['index', 'list'] })),
    message:
      "api > version 1 > resources 'foo': there is no action 'list'; the actions are index, create, new, edit, show, update, destroy",
  },
  'an action that needs an id or a list, of a resource of which there is one': {
    declare: (it) => it.version(1, () => it.resource('profile', { only: ['show', 'index'] })),
    message:
      "api > version 1 > resource 'profile': there is no action 'index'; the actions are create, new, edit, show, update, destroy",
  },
  'a resource of which there is one, with the path of another': {
    declare: (it) =>
      it.version(1, () => {
        it.resources('foo', { only: 'create' });
        it.resource('foo', { only: 'create' });
      }),
    message: "api > version 1 > resource 'foo': version 1 already has POST /api/foo, as the route 'api_foo_index'",
  },
  'an unknown option of a resource': {
    declare: (it) => it.version(1, () => untyped(it).resources!('foo', { except: 'index' })),
    message: "api > version 1 > resources 'foo': unknown option 'except'; the only option is 'only'",
  },
  'a resource with the syntax of routes': {
    declare: (it) => it.version(1, () => it.resources('foo/:id')),
    message: "api > version 1: resources requires a name, not 'foo/:id'",
  },
  'a resource twice in a version': {
    declare: (it) =>
      it.version(1, () => {
        it.resources('foo');
        it.resources('foo', { only: 'show' });
      }),
    message: "api > version 1 > resources 'foo': version 1 already has GET /api/foo/:id, as the route 'api_foo'",
  },
  'an inherited resource again': {
    declare: (it) => {
      it.version(1, () => it.cache({ as: 'v1' }, () => it.resources('foo', { only: 'index' })));
      it.version(2, () => {
        it.inherit({ from: 'v1' });
        it.resources('foo', { only: 'index' });
      });
    },
    message: "api > version 2 > resources 'foo': version 2 already has GET /api/foo, as the route 'api_foo_index'",
  },
  'two paths that match the same requests': {
    declare: (it) =>
      it.version(1, () => it.resources('posts', { only: 'edit' }, () => it.resources('edit', { only: 'index' }))),
    message:
      "api > version 1 > resources 'posts' > resources 'edit': version 1 already has GET /api/posts/:id/edit, as the route 'edit_api_post'",
  },
  'a resource without a name of its own, twice in a version': {
    declare: (it) =>
      it.version(1, () => {
        it.resources('users', { only: 'show' });
        it.resource('user', { only: 'show' });
        it.resource('user', { only: 'show' });
      }),
    message: "api > version 1 > resource 'user': version 1 already has GET /api/user",
  },
  'a function that returns no controller': {
    options: { controllers: () => undefined },
    message:
      "api > version 1 > resources 'foo': the function controllers returned nothing for 'api/v1/foo', not a class",
  },
  'a missing controller': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.namespace('nests', () => it.resources('absent'))),
    message:
      "api > version 1 > namespace 'nests' > resources 'absent': there is no controller " +
      '<fixtures>/api/v1/nests/absent-controller with the extension .js, .cjs, .mjs, .ts, .cts, .mts',
  },
  'two files for a controller': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.resources('twice')),
    message:
      "api > version 1 > resources 'twice': there is more than one controller for 'api/v1/twice': " +
      '<fixtures>/api/v1/twice-controller.js, <fixtures>/api/v1/twice-controller.cjs',
  },
  'a controller without an action': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.resources('reading', { only: ['show', 'update'] })),
    message:
      "api > version 1 > resources 'reading': the controller api/v1/reading (class ReadingController) lacks the action 'update'; " +
      "add the method, or leave the action out with 'only' (a field such as `update = () => …` is not a method)",
  },
  'a controller with a getter for an action': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.resources('reading', { only: 'index' })),
    message:
      "api > version 1 > resources 'reading': the controller api/v1/reading (class ReadingController) lacks the action 'index'; " +
      'it must be a method, not a getter or a value',
  },
  'a controller file without a class': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.resources('classless')),
    message:
      "api > version 1 > resources 'classless': cannot load the controller <fixtures>/api/v1/classless-controller.js: it exports no class",
  },
  'a controller file with two classes': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.resources('crowded')),
    message:
      "api > version 1 > resources 'crowded': cannot load the controller <fixtures>/api/v1/crowded-controller.js: " +
      'it exports 2 classes; export the controller as default, or the others elsewhere',
  },
  'a controller file that throws': {
    options: { controllers: FIXTURES },
    declare: (it) => it.version(1, () => it.resources('throwing')),
    message:
      "api > version 1 > resources 'throwing': cannot load the controller <fixtures>/api/v1/throwing-controller.js: no database",
  },
};

describe('a declaration', () => {
  it.each(Object.entries(WRONG))(
    'with %s is an error that says where',
    (_what, { options, declare = foo, message }) => {
      const router = new Router();
      const all = { vendorString: 'acme', controllers: describing, ...options } as unknown as ApiOptions;
      let thrown: unknown;
      try {
        api(router, all, declare);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(DeclarationError);
      expect((thrown as Error).message.replaceAll(FIXTURES, '<fixtures>')).toBe(message);
      expect(router.stack).toEqual([]);
    },
  );

  it('that continues after it has ended is an error', () => {
    let kept: Api | undefined;
    api(new Router(), { vendorString: 'acme', controllers: describing }, (it) => {
      kept = it;
      foo(it);
    });
    expect(() => kept?.resources('bar')).toThrow('api: resources is called after the declaration has ended');
    expect(() => kept?.version(2, () => undefined)).toThrow('api: version is called after the declaration has ended');
  });

  it('on a router that runs only the last matching route is an error', () => {
    const options = { vendorString: 'acme', controllers: describing };
    expect(() => api(new Router({ exclusive: true }), options, foo)).toThrow(
      /^api: the router has the option exclusive/,
    );
    expect(() => api({} as never, options, foo)).toThrow('api: the first argument must be an @koa/router instance');
  });

  it('that repeats a route of another block of the vendor is an error', () => {
    const router = new Router();
    const options = { vendorString: 'acme', controllers: describing };
    api(router, options, foo);
    const registered = router.stack.length;
    expect(() => api(router, options, foo)).toThrow(
      "api > version 1: another api block of the vendor 'acme' already has GET /api/foo{.:format} in version 1",
    );
    expect(() => api(router, { ...options, path: 'v' }, foo)).toThrow(
      "api: the router already has a route named 'api_foo_index', with the path /api/foo{.:format}; give this API another namespace",
    );
    expect(router.stack).toHaveLength(registered);
  });
});
