import { posix } from 'node:path';
import type { ControllerSource } from './controller-source';

export interface Subclass {
  readonly source: ControllerSource;
  /** The version of the class that is extended. */
  readonly version: number;
  /** The path from the new file to the extended one, with its extension: `../v1/foo-controller.ts`. */
  readonly path: string;
  /** Relative modules that other controllers import, for a file that imports none. */
  readonly siblingImports: readonly string[];
}

/** The text of a controller that extends the one of the previous version and changes nothing. */
export function subclassText({ source, version, path, siblingImports }: Subclass): string {
  const { module, exportName, className } = source;
  const base = `${className}V${version}`;
  if (module === 'commonjs') {
    const specifier = `'${path.replace(/\.js$/, '')}'`;
    if (exportName === 'module.exports') {
      return `const ${base} = require(${specifier});\n\nmodule.exports = class ${className} extends ${base} {};\n`;
    }
    return (
      `const { ${exportName}: ${base} } = require(${specifier});\n\n` +
      `exports.${exportName} = class ${className} extends ${base} {};\n`
    );
  }
  const specifier = `'${importPath(path, source.relativeImports.length > 0 ? source.relativeImports : siblingImports)}'`;
  if (exportName === 'default') {
    return `import ${base} from ${specifier};\n\nexport default class ${className} extends ${base} {}\n`;
  }
  return `import { ${exportName} as ${base} } from ${specifier};\n\nexport class ${className} extends ${base} {}\n`;
}

/** The extension that a compiled TypeScript file has, by that of its source. */
const COMPILED: Readonly<Record<string, string>> = { '.ts': '.js', '.mts': '.mjs', '.cts': '.cjs' };

/**
 * How a module is imported. JavaScript is imported with its extension. For TypeScript the project decides: with the extension of
 * the source (for Node, which removes types), without one (for bundlers), otherwise with that of the compiled file, which every
 * setting of the compiler accepts.
 */
function importPath(path: string, examples: readonly string[]): string {
  const extension = posix.extname(path);
  const compiled = COMPILED[extension];
  if (compiled === undefined) return path;
  const without = path.slice(0, -extension.length);
  const extensions = new Set(examples.map((example) => posix.extname(example)));
  if (extensions.has(extension)) return path;
  return extensions.size > 0 && !extensions.has(compiled) && extensions.has('') ? without : without + compiled;
}
