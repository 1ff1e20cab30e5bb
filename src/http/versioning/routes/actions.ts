import { collectionRouteName, memberRouteName, singleRouteName } from './names';

/** A method of a controller that routes lead to. */
export type Action = 'index' | 'create' | 'new' | 'edit' | 'show' | 'update' | 'destroy';

/** A path of a resource with the actions that it leads to. */
export interface ResourcePath {
  /** After the path of the resource. */
  readonly suffix: readonly string[];
  readonly methods: Readonly<Record<string, Action>>;
  /** The name of the route. @param before the parts before the resource: namespaces and enclosing resources */
  readonly nameOf: (before: readonly string[], resource: string) => string;
}

/** The routes of a resource of which there are many, as in Rails. HEAD follows GET. */
export const RESOURCE_PATHS: readonly ResourcePath[] = [
  { suffix: [], methods: { GET: 'index', POST: 'create' }, nameOf: collectionRouteName },
  { suffix: ['new'], methods: { GET: 'new' }, nameOf: (before, it) => `new_${memberRouteName(before, it)}` },
  { suffix: [':id', 'edit'], methods: { GET: 'edit' }, nameOf: (before, it) => `edit_${memberRouteName(before, it)}` },
  {
    suffix: [':id'],
    methods: { GET: 'show', PUT: 'update', PATCH: 'update', DELETE: 'destroy' },
    nameOf: memberRouteName,
  },
];

/** The routes of a resource of which there is one, as in Rails: without an id. */
export const SINGLE_RESOURCE_PATHS: readonly ResourcePath[] = [
  {
    suffix: [],
    methods: { GET: 'show', POST: 'create', PUT: 'update', PATCH: 'update', DELETE: 'destroy' },
    nameOf: singleRouteName,
  },
  { suffix: ['new'], methods: { GET: 'new' }, nameOf: (before, it) => `new_${singleRouteName(before, it)}` },
  { suffix: ['edit'], methods: { GET: 'edit' }, nameOf: (before, it) => `edit_${singleRouteName(before, it)}` },
];

export const ACTIONS: readonly Action[] = ['index', 'create', 'new', 'edit', 'show', 'update', 'destroy'];

/** The actions that routes lead to. */
export function actionsOf(paths: readonly ResourcePath[]): readonly Action[] {
  return ACTIONS.filter((action) => paths.some(({ methods }) => Object.values(methods).includes(action)));
}

export function isAction(value: unknown): value is Action {
  return ACTIONS.some((action) => action === value);
}
