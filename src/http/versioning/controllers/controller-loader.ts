import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { type ControllerClass, exportedClass, isClass } from './controller-class';

const JAVASCRIPT = ['.js', '.cjs', '.mjs'];
const TYPESCRIPT = ['.ts', '.cts', '.mts'];

/** Why a module cannot be loaded with `require`, by error code. */
const LOAD_HINTS: Readonly<Record<string, string>> = {
  ERR_REQUIRE_ASYNC_MODULE: 'it uses await outside of functions, so it cannot be loaded when routes are declared',
  ERR_REQUIRE_ESM: 'this version of Node cannot load ES modules when routes are declared: use 20.19 or newer',
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX:
    'Node only removes types: compile the file, or run the application with a loader such as tsx',
};

/** Finds the classes of controllers by name, for example `api/v1/foo`, each once. */
export class ControllerLoader {
  readonly #source: string | ((name: string) => ControllerClass | undefined);
  readonly #loaded = new Map<string, ControllerClass>();

  /** @param source the folder of the controllers, relative to the working directory, or a function that returns them */
  constructor(source: string | ((name: string) => ControllerClass | undefined)) {
    this.#source = typeof source === 'string' ? resolve(source) : source;
  }

  /** @throws Error that says why there is no such controller */
  load(name: string): ControllerClass {
    let controller = this.#loaded.get(name);
    if (controller === undefined) {
      controller = typeof this.#source === 'string' ? fromFile(this.#source, name) : fromFunction(this.#source, name);
      this.#loaded.set(name, controller);
    }
    return controller;
  }
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
    const hint = LOAD_HINTS[String(Object(cause).code)];
    const reason = hint ?? (cause instanceof Error ? cause.message : String(cause));
    throw new Error(`cannot load the controller ${file}: ${reason}`, { cause });
  }
}

/** @throws Error when there is no file for the controller, more than one, or only one that this process cannot run */
function controllerFile(folder: string, name: string): string {
  const path = resolve(folder, `${name}-controller`);
  const files = [...JAVASCRIPT, ...TYPESCRIPT].map((extension) => path + extension).filter((file) => existsSync(file));
  const [file, ...others] = files;
  if (file === undefined) {
    throw new Error(`there is no controller ${path} with the extension ${[...JAVASCRIPT, ...TYPESCRIPT].join(', ')}`);
  }
  if (others.length > 0) throw new Error(`there is more than one controller for '${name}': ${files.join(', ')}`);
  if (!canRun(file)) {
    throw new Error(
      `the controller ${file} is TypeScript, which this process does not run: compile it, ` +
        'or run the application with Node 22.18 or newer, or with a loader such as tsx',
    );
  }
  return file;
}

/** Node removes types itself from 22.18 on; loaders such as tsx register the extension. */
function canRun(file: string): boolean {
  const extension = file.slice(file.lastIndexOf('.'));
  if (!TYPESCRIPT.includes(extension)) return true;
  return Boolean(Reflect.get(process.features, 'typescript')) || Object.hasOwn(require.extensions, extension);
}
