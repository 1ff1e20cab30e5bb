import type { Context } from 'koa';

/** A class whose instances answer requests: a new one for each request, made with the context. */
// oxlint-disable-next-line typescript/no-explicit-any -- controllers may take any context type of their application
export type ControllerClass = new (ctx: any) => object;

/** An action method of a controller. */
export type ActionMethod = (ctx: Context, next: () => Promise<unknown>) => unknown;

/**
 * Whether a value is a class. Its property `prototype` is not writable, unlike that of a function; that holds for decorated and
 * proxied classes too.
 */
export function isClass(value: unknown): value is ControllerClass {
  return typeof value === 'function' && Object.getOwnPropertyDescriptor(value, 'prototype')?.writable === false;
}

/**
 * The class that a module exports: the module itself (`module.exports = class`), its default export, or the only class among its
 * exports.
 *
 * @throws Error when there is none, or more than one to choose from
 */
export function exportedClass(module: unknown): ControllerClass {
  if (isClass(module)) return module;
  const exported = Object(module) as Readonly<Record<string, unknown>>;
  if (isClass(exported.default)) return exported.default;
  // Of a CommonJS module that is imported, `default` is module.exports.
  const classes = [
    ...new Set([...Object.values(exported), ...Object.values(Object(exported.default))].filter(isClass)),
  ];
  const [only] = classes;
  if (only === undefined) throw new Error('it exports no class');
  if (classes.length > 1) {
    throw new Error(`it exports ${classes.length} classes; export the controller as default, or the others elsewhere`);
  }
  return only;
}

/**
 * Checks that a class has the action methods.
 *
 * @throws Error that names the first one that is missing
 */
export function checkActions(controller: ControllerClass, actions: readonly string[], name: string): ControllerClass {
  for (const action of actions) {
    const descriptor = inheritedDescriptor(controller.prototype, action);
    if (typeof descriptor?.value === 'function') continue;
    const hint =
      descriptor === undefined
        ? `add the method, or leave the action out with 'only' (a field such as \`${action} = () => …\` is not a method)`
        : 'it must be a method, not a getter or a value';
    throw new Error(
      `the controller ${name} (class ${controller.name || 'without a name'}) lacks the action '${action}'; ${hint}`,
    );
  }
  return controller;
}

function inheritedDescriptor(prototype: unknown, name: string): PropertyDescriptor | undefined {
  for (
    let at = prototype;
    typeof at === 'object' && at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  ) {
    const descriptor = Object.getOwnPropertyDescriptor(at, name);
    if (descriptor !== undefined) return descriptor;
  }
  return undefined;
}
