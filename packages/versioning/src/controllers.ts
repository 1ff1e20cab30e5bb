import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, resolve } from 'node:path';

/** A class whose instances answer requests: a new one for each request, made with the context. */
// oxlint-disable-next-line typescript/no-explicit-any -- controllers may take any context type of their application
export type ControllerClass = new (ctx: any) => object;

/** An action method of a controller. */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export type ActionMethod = (ctx: any, next: () => Promise<unknown>) => unknown;

/** The folder of the controllers, or a function that returns the class for a name such as `api/v1/foo`. */
export type ControllerSource = string | ((name: string) => ControllerClass | undefined);

const JAVASCRIPT = ['.js', '.cjs', '.mjs'];
const TYPESCRIPT = ['.ts', '.cts', '.mts'];

/**
 * The class of a controller.
 *
 * @param source a folder is relative to the working directory
 * @param name for example `api/v1/foo`
 * @param actions the methods that it must have
 * @throws Error that says why there is no such controller
 */
export function loadController(source: ControllerSource, name: string, actions: readonly string[]): ControllerClass {
  const controller = typeof source === 'string' ? fromFile(source, name) : fromFunction(source, name);
  const lacking = actions.find((action) => typeof Reflect.get(controller.prototype as object, action) !== 'function');
  if (lacking === undefined) return controller;
  throw new Error(
    `the controller ${name} (class ${controller.name || 'without a name'}) lacks the action '${lacking}'; ` +
      `add the method, or leave the action out with 'only' (a field such as \`${lacking} = () => …\` is not a method)`,
  );
}

function fromFunction(find: (name: string) => unknown, name: string): ControllerClass {
  const found = find(name);
  if (isClass(found)) return found;
  throw new Error(
    `the function controllers returned ${found === undefined ? 'nothing' : typeof found} for '${name}', not a class`,
  );
}

function fromFile(folder: string, name: string): ControllerClass {
  const file = controllerFile(folder, name);
  try {
    return exportedClass(createRequire(file)(file));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot load the controller ${file}: ${reason}`, { cause });
  }
}

/** @throws Error when there is no file for the controller, more than one, or only one that this process cannot run */
function controllerFile(folder: string, name: string): string {
  const path = resolve(folder, `${name}-controller`);
  const extensions = [...JAVASCRIPT, ...TYPESCRIPT];
  const files = extensions.map((extension) => path + extension).filter((file) => existsSync(file));
  const [file, ...others] = files;
  if (file === undefined) throw new Error(`there is no controller ${path} with the extension ${extensions.join(', ')}`);
  if (others.length > 0) throw new Error(`there is more than one controller for '${name}': ${files.join(', ')}`);
  if (!canRun(extname(file))) {
    throw new Error(
      `the controller ${file} is TypeScript, which this process does not run: compile it, ` +
        'or run the application with Node 22.18 or newer, or with a loader such as tsx',
    );
  }
  return file;
}

/** Node removes types itself from 22.18 on; loaders such as tsx register the extension. */
function canRun(extension: string): boolean {
  if (!TYPESCRIPT.includes(extension)) return true;
  return Boolean(Reflect.get(process.features, 'typescript')) || Object.hasOwn(require.extensions, extension);
}

/**
 * The class that a module exports: the module itself (`module.exports = class`), its default export, or the only class
 * among its exports.
 *
 * @throws Error when there is none, or more than one to choose from
 */
function exportedClass(module: unknown): ControllerClass {
  if (isClass(module)) return module;
  const exported = Object(module) as Readonly<Record<string, unknown>>;
  if (isClass(exported.default)) return exported.default;
  // Of a CommonJS module that is imported, `default` is module.exports.
  const classes = new Set([...Object.values(exported), ...Object.values(Object(exported.default))].filter(isClass));
  const [only] = classes;
  if (only === undefined) throw new Error('it exports no class');
  if (classes.size === 1) return only;
  throw new Error(`it exports ${classes.size} classes; export the controller as default, or the others elsewhere`);
}

/**
 * Whether a value is a class. Its property `prototype` is not writable, unlike that of a function; that holds for
 * decorated and proxied classes too.
 */
function isClass(value: unknown): value is ControllerClass {
  return typeof value === 'function' && Object.getOwnPropertyDescriptor(value, 'prototype')?.writable === false;
}
