import { join } from 'node:path';
import { Router } from '@koa/router';
import { type Api, type ApiOptions, DeclarationError, api } from '../../packages/versioning/src';
import { describing } from './serve-api';

const FIXTURES = join(__dirname, 'fixtures');
const OPTIONS: ApiOptions = { vendorString: 'acme', controllers: describing };

/** Declarations that JavaScript allows and TypeScript does not. */
type Untyped = Readonly<Record<keyof Api, (...values: unknown[]) => void>>;

function foo(it: Api): void {
  it.version(1, () => it.resources('foo'));
}

const VENDOR = "vendorString must be the vendor part of a media type, for example 'myvendor', not";
const NAMES = "must be names of letters, digits, '-', '_', '.' and '~', separated by '/', not";
const ACTIONS = 'create, new, edit, show, update, destroy';

/** The beginning of the message after `api`, and the options of a declaration that is right otherwise. */
const WRONG_OPTIONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  [`: ${VENDOR} undefined`]: { vendorString: undefined },
  [`: ${VENDOR} 'a b'`]: { vendorString: 'a b' },
  ": unknown option 'vendor'; the nearest is 'vendorString'": { vendor: 'acme' },
  ": unknown option 'default_version'; the nearest is 'defaultVersion'": { default_version: 1 },
  ": unknown option 'hots'; the nearest is 'host'": { hots: 'a' },
  ": unknown option 'ned'; the nearest is 'end'": { ned: true },
  ": unknown option '123'; the options are vendorString, controllers, defaultVersion, namespace, path, prefix, host, ":
    {
      123: 1,
    },
  ': methods is an option of a whole router, for all its routes: new Router({ methods: … })': { methods: ['GET'] },
  ': exclusive is an option of a whole router, for all its routes: new Router({ exclusive: … })': { exclusive: true },
  ": sensitive must be true or false, not 'no'": { sensitive: 'no' },
  ': strict must be true or false, not 1': { strict: 1 },
  ": end must be true or false, not 'false'": { end: 'false' },
  ': host must be the name of a host or a regular expression, not 7': { host: 7 },
  ": host must be the name of a host or a regular expression, not ''": { host: '' },
  [`: prefix ${NAMES} '/:a?'; parameters, such as ':shop', belong to prefix`]: { prefix: '/:a?' },
  ": defaultVersion must be a positive whole number, not '1'": { defaultVersion: '1' },
  ': defaultVersion is 2, which is not declared': { defaultVersion: 2 },
  [`: path ${NAMES} ':tenant/api'; parameters, such as ':shop', belong to prefix`]: { path: ':tenant/api' },
  [`: namespace ${NAMES} '../api'`]: { namespace: '../api' },
  ': controllers must be a folder or a function that returns a class, not undefined': { controllers: undefined },
  ": formats must be a list of file extensions without a dot, not [ '.json' ]": { formats: ['.json'] },
  ": updateMethods must be a list of PUT and PATCH, not [ 'POST' ]": { updateMethods: ['POST'] },
  " > version 1 > resources 'foo': the function controllers returned nothing for 'api/v1/foo', not a class": {
    controllers: () => undefined,
  },
};

/** The message after `api > version 1`, and what is declared in version 1. */
const WRONG_IN_A_VERSION: Readonly<Record<string, (it: Untyped) => void>> = {
  ': version 2 is inside another version': (it) => it.version(2, () => undefined),
  ": there is no cache 'v1'; none is declared before": (it) => it.inherit({ from: 'v1' }),
  " > namespace 'other': there is no cache 'two'; declared before are 'one'": (it) => {
    it.cache({ as: 'one' }, () => it.resources('foo'));
    it.namespace('other', () => it.inherit({ from: ['one', 'two'] }));
  },
  ": cache requires a name: { as: 'name' }": (it) => it.cache({}, () => undefined),
  [` > resources 'foo': there is no action 'list'; the actions are index, ${ACTIONS}`]: (it) =>
    it.resources('foo', { only: ['index', 'list'] }),
  [` > resource 'profile': there is no action 'index'; the actions are ${ACTIONS}`]: (it) =>
    it.resource('profile', { only: ['show', 'index'] }),
  " > resources 'foo': unknown option 'except'; the options are 'only' and 'shallow'": (it) =>
    it.resources('foo', { except: 'index' }),
  " > resources 'foo': shallow must be true or false, not 'yes'": (it) => it.resources('foo', { shallow: 'yes' }),
  " > resources 'replies': version 1 already has GET /api/replies/:id, as the route 'api_reply'": (it) => {
    it.resources('posts', { only: [], shallow: true }, () => it.resources('replies', { only: 'show' }));
    it.resources('replies', { only: 'show' });
  },
  ": resources requires a name, not 'foo/:id'": (it) => it.resources('foo/:id'),
  " > inherit 'kept': version 1 already has GET /api/foo/:id, as the route 'api_foo'": (it) => {
    it.cache({ as: 'kept' }, () => it.resources('foo', { only: 'show' }));
    it.inherit({ from: 'kept' });
  },
  " > resources 'posts' > resources 'edit': version 1 already has GET /api/posts/:id/edit, as the route 'edit_api_post'":
    (it) => it.resources('posts', { only: 'edit' }, () => it.resources('edit', { only: 'index' })),
  " > resource 'user': version 1 already has GET /api/user": (it) => {
    it.resources('users', { only: 'show' });
    [1, 2].forEach(() => it.resource('user', { only: 'show' }));
  },
};

const LOAD = 'cannot load the controller <fixtures>/api/v1';
const LACKS = 'the controller api/v1/reading (class ReadingController) lacks the action';

/**
 * The beginning of the message after `api > version 1 > resources '<name>': `, a controller of the fixtures, and its
 * action.
 */
const WRONG_CONTROLLERS: readonly (readonly [message: string, name: string, only?: 'update'])[] = [
  ['there is no controller <fixtures>/api/v1/absent-controller with the extension .js, .cjs, .mjs, .ts,', 'absent'],
  ["there is more than one controller for 'api/v1/twice': <fixtures>/api/v1/twice-controller.js, <fixtures>", 'twice'],
  [`${LACKS} 'update'; add the method, or leave the action out with 'only' (a field such as `, 'reading', 'update'],
  [`${LOAD}/classless-controller.js: it exports no class`, 'classless'],
  [`${LOAD}/crowded-controller.js: it exports 2 classes; export the controller as default, or `, 'crowded'],
  [`${LOAD}/throwing-controller.js: no database`, 'throwing'],
];

/** The message after `api`, and what is declared. */
const WRONG: Readonly<Record<string, (it: Untyped) => void>> = {
  ': no version is declared': () => undefined,
  ': a version must be a positive whole number, not 1.5': (it) => it.version(1.5, () => undefined),
  ': a version must be a positive whole number, not 0': (it) => it.version(0, () => undefined),
  ': version 1 is declared twice': (it) => [1, 1].forEach((n) => it.version(n, () => undefined)),
  ': resources must be inside a version': (it) => it.resources('foo'),
  ' > version 1: a function is required that declares what is inside': (it) => it.version(1),
  ' > version 1: the function must be synchronous: routes are registered when it returns': (it) =>
    it.version(1, () => Promise.resolve()),
};

type Row = readonly [message: string, declare: (it: Api) => void, options: Readonly<Record<string, unknown>>];

const ROWS: readonly Row[] = [
  ...Object.entries(WRONG_OPTIONS).map(([message, options]): Row => [message, foo, options]),
  ...Object.entries(WRONG).map(([message, declare]): Row => [message, (it) => declare(it as never), {}]),
  ...Object.entries(WRONG_IN_A_VERSION).map(([message, declare]): Row => [
    ` > version 1${message}`,
    (it) => it.version(1, () => declare(it as never)),
    {},
  ]),
  ...WRONG_CONTROLLERS.map(([message, name, only]): Row => [
    ` > version 1 > resources '${name}': ${message}`,
    (it) => it.version(1, () => it.resources(name, { only: only ?? 'show' })),
    { controllers: FIXTURES },
  ]),
];

describe('a declaration is rejected, without a route,', () => {
  it.each(ROWS)('with the message api%s', (message, declare, options) => {
    const router = new Router();
    let thrown: unknown;
    try {
      api(router, { ...OPTIONS, ...options }, declare);
    } catch (error) {
      thrown = error;
    }
    expect([thrown, router.stack]).toEqual([expect.any(DeclarationError), []]);
    const text = (thrown as Error).message.replaceAll(FIXTURES, '<fixtures>');
    expect(text.slice(0, message.length + 3)).toBe(`api${message}`);
  });

  it('when it continues after it has ended', () => {
    let kept: Api | undefined;
    api(new Router(), OPTIONS, (it) => {
      kept = it;
      foo(it);
    });
    expect(() => kept?.resources('bar')).toThrow('api: resources is called after the declaration has ended');
    expect(() => kept?.version(2, () => undefined)).toThrow('api: version is called after the declaration has ended');
  });

  it('on a router that runs only the last matching route, and on what is no router', () => {
    expect(() => api(new Router({ exclusive: true }), OPTIONS, foo)).toThrow(
      /^api: the router has the option exclusive/,
    );
    expect(() => api({} as never, OPTIONS, foo)).toThrow('api: the first argument must be an @koa/router instance');
  });

  it('when it repeats a route of another block of the vendor', () => {
    const router = new Router();
    api(router, OPTIONS, foo);
    const registered = router.stack.length;
    expect(() => api(router, OPTIONS, foo)).toThrow(
      "api > version 1: another api block of the vendor 'acme' already has GET /api/foo in version 1",
    );
    expect(() => api(router, { ...OPTIONS, path: 'v' }, foo)).toThrow(
      "api: the router already has a route named 'api_foo_index', with the path /api/foo{.:format}; " +
        'give this API another namespace',
    );
    expect(router.stack).toHaveLength(registered);
  });
});
